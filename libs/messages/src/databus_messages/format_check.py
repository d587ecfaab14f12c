"""The check of formats, for `--check` of the publisher and for `databus check`."""

import asyncio

from databus_core.checks import Check
from databus_core.settings import Settings
from databus_messages.outputs import check_outputs, plan_outputs


async def check_formats(settings: Settings) -> None:
    """Check formats and options, and the services that formats depend on. Raises DatabusError (`check_outputs`)."""
    await asyncio.to_thread(check_outputs, plan_outputs(settings.publisher.rules), settings.name)


async def _formats(settings: Settings) -> str:
    await check_formats(settings)
    return ", ".join(sorted({rule.format for rule in settings.publisher.rules if not rule.drop}))


FORMATS: Check[Settings] = Check("formats", _formats)
