"""The program `databus-reader`."""

from databus import runtime
from databus_reader import service


def main() -> None:
    """Run the reader."""
    runtime.main("reader", listen=lambda settings: settings.reader.listen, run=service.run, check=service.check)


if __name__ == "__main__":
    main()
