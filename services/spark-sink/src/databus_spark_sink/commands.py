"""The commands of `databus-spark-sink`. Each opens a Spark of its own, beside that of the running sink."""

import argparse
import asyncio
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.commands import Command
from databus_core.errors import LakeUnavailable
from databus_core.settings import Settings, read_duration
from databus_spark.layout import Layout
from databus_spark_sink import session
from databus_spark_sink.compare.verify import verify
from databus_spark_sink.rebuild import rebuild
from databus_spark_sink.resync import resync
from databus_spark_sink.upkeep.command import maintain

_EXIT_CODES = "Exit code 0: all are {good}; 1: at least one {bad}; 75: something is unavailable."


def _in_session(
    work: Callable[[Settings, SparkSession, Layout, argparse.Namespace], bool],
) -> Callable[[Settings, argparse.Namespace], int]:
    """Make the work of a command, which returns whether all is well, from work in an open session."""

    def run(settings: Settings, arguments: argparse.Namespace) -> int:
        layout = Layout(settings.spark.lake)
        spark = session.open_session(settings.spark, layout)
        try:
            return 0 if work(settings, spark, layout, arguments) else 1
        except (PySparkException, Py4JError) as error:  # its message may quote a row
            raise LakeUnavailable(f"the lake in {layout.root} cannot be used: {type(error).__name__}") from error
        finally:
            spark.stop()

    return run


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="*", metavar="SCHEMA.TABLE", help="tables or patterns of tables (default: all)")


def _verify(settings: Settings, spark: SparkSession, layout: Layout, arguments: argparse.Namespace) -> bool:
    return asyncio.run(verify(settings, spark, layout, arguments.tables or settings.spark.tables))


def _configure_resync(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", nargs="+", metavar="SCHEMA.TABLE", help="tables, or patterns of tables of the lake")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the sink has loaded the tables")


def _resync(_: Settings, spark: SparkSession, layout: Layout, arguments: argparse.Namespace) -> bool:
    return resync(spark, layout, arguments.tables, wait=not arguments.no_wait)


def _configure_maintain(parser: argparse.ArgumentParser) -> None:
    for option in ("keep", "log-retention"):
        setting = f"spark.maintain.{option.replace('-', '_')}"
        parser.add_argument(f"--{option}", type=_duration, metavar="DURATION", help=f"in place of {setting}")


def _duration(text: str) -> float:
    try:
        return read_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _maintain(settings: Settings, spark: SparkSession, layout: Layout, arguments: argparse.Namespace) -> bool:
    given = {"keep": arguments.keep, "log_retention": arguments.log_retention}
    chosen = {key: value for key, value in given.items() if value is not None}
    return maintain(spark, layout, settings.spark.maintain.model_copy(update=chosen))


def _configure_rebuild(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=_table, metavar="SCHEMA.TABLE", help="table of the lake")
    parser.add_argument("--to", required=True, metavar="FOLDER", help="new folder in the lake, as restored/orders")
    parser.add_argument(
        "--at",
        metavar="SEQUENCE|TRANSACTION|TIME",
        help="sequence or ordinal of the last transaction to have, or a time (default: the end of the change log)",
    )


def _table(text: str) -> TableName:
    schema, dot, table = text.partition(".")
    if not dot:
        raise argparse.ArgumentTypeError(f"{text!r} is no table as schema.table")
    return schema, table


def _rebuild(settings: Settings, spark: SparkSession, layout: Layout, arguments: argparse.Namespace) -> bool:
    rebuild(spark, layout, arguments.table, arguments.to, arguments.at, settings.publisher.rules)
    return True


COMMANDS = (
    Command(
        "verify",
        "compare mirrors with their tables in the database",
        "Compare mirrors with their tables in the database, as of one transaction. A new dump of the tables is taken, "
        "and the sink keeps running meanwhile. Prints a line for each table, also for those that only the database or "
        f"only the lake has. {_EXIT_CODES.format(good='equal', bad='differs, lacks mirror or table, or is parked')}",
        _configure_verify,
        _in_session(_verify),
    ),
    Command(
        "resync",
        "let the running sink load mirrors again from a new dump",
        "Let the running sink load mirrors again, each from a new dump, beside the stream; parked tables, too. "
        "Shows what the sink does until all are loaded; Ctrl-C stops that, not the sink. "
        f"{_EXIT_CODES.format(good='loaded', bad='could not be')}",
        _configure_resync,
        _in_session(_resync),
    ),
    Command(
        "maintain",
        "compact the lake's files, and delete old ones",
        "Write small files of the change log and the mirrors together, and delete files and history of earlier "
        "versions, and old days of the change log. The sink does this itself, at the interval spark.maintain.interval. "
        "Exit code 1: a step failed, for instance because the sink has changed the table meanwhile. On S3, "
        "or in Iceberg on anything but HDFS, stop the sink before.",
        _configure_maintain,
        _in_session(_maintain),
    ),
    Command(
        "rebuild",
        "make the rows that a table had at any transaction into a new table",
        "Make the rows that a table had after any transaction of the change log into a new table in another folder of "
        "the lake, from the mirror's history and the change log. Exit code 1: the lake does not have these rows any "
        "more; 2: there is no such table or time.",
        _configure_rebuild,
        _in_session(_rebuild),
    ),
)
