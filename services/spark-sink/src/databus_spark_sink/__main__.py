"""The program `databus-spark-sink`."""

from databus_core.runtime import main as run_service
from databus_spark_sink.commands import COMMANDS
from databus_spark_sink.service import check, run, run_until_idle


def main() -> None:
    """Run the sink, or one of its commands."""
    run_service(
        "spark-sink",
        listen=lambda settings: settings.spark.listen,
        run=run,
        until_idle=run_until_idle,
        check=check,
        commands=COMMANDS,
    )


if __name__ == "__main__":
    main()
