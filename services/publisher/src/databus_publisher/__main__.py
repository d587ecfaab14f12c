"""The program `databus-publisher`."""

from functools import partial

from databus_core import runtime
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_messages.outputs import plan_outputs
from databus_publisher import service
from databus_publisher.record_batch import keep_freed_memory


async def _run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    plan_outputs(settings.publisher.rules)  # fail on wrong rules before another publisher is fenced
    await service.run(settings, health, until_idle=until_idle)


async def _check(settings: Settings, health: Health) -> None:
    plan_outputs(settings.publisher.rules)
    await service.check(settings, health)


def main() -> None:
    """Run the publisher."""
    keep_freed_memory()
    runtime.main(
        "publisher",
        listen=lambda settings: settings.publisher.listen,
        run=_run,
        until_idle=partial(_run, until_idle=True),
        check=_check,
    )


if __name__ == "__main__":
    main()
