"""The program `databus-publisher`."""

from databus import runtime
from databus_publisher import service


def main() -> None:
    """Run the publisher."""
    runtime.main("publisher", listen=lambda settings: settings.publisher.listen, run=service.run, check=service.check)


if __name__ == "__main__":
    main()
