"""The program `databus-reader`."""

from functools import partial

from databus_core import runtime
from databus_reader import service


def main() -> None:
    """Run the reader."""
    runtime.main(
        "reader",
        listen=lambda settings: settings.reader.listen,
        run=service.run,
        until_idle=partial(service.run, until_idle=True),
        check=service.check,
    )


if __name__ == "__main__":
    main()
