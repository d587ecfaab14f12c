"""The command `maintain`: do at once what the sink does at the interval `spark.maintain.interval`."""

import sys
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from databus_core.errors import LakeUnavailable
from databus_core.events import full_name
from databus_core.settings import Maintain
from databus_spark.layout import Layout
from databus_spark_sink.status_line import StatusLine
from databus_spark_sink.tables import TableStates
from databus_spark_sink.upkeep.work import Upkeep


def maintain(spark: SparkSession, layout: Layout, settings: Maintain) -> bool:
    """Do the upkeep of the whole lake; print a line for each step that failed; return whether none has."""
    upkeep = Upkeep(spark, layout, settings)
    mirrors = {full_name(*name): layout.mirror(*name) for name in TableStates(spark, layout.tables).known}
    own = {"change log": layout.changes, "table states": layout.tables, "quarantine": layout.quarantine}
    steps: list[tuple[str, Callable[[], None]]] = [
        ("change log: delete old days", upkeep.trim),
        ("downloads: delete abandoned ones", upkeep.sweep),
    ]
    for name, path in (own | mirrors).items():
        steps.append((f"{name}: compact", partial(upkeep.compact, name, path)))
        steps.append((f"{name}: keep history", partial(upkeep.keep_history, path)))
        steps.append((f"{name}: delete old files", partial(upkeep.vacuum, path)))
    failures = 0
    with StatusLine() as line:
        for number, (step, work) in enumerate(steps, 1):
            line.show(f"step {number} of {len(steps)}", step)
            try:
                work()
            except (LakeUnavailable, PySparkException, Py4JError) as error:
                # for instance the sink has changed the table meanwhile
                failures += 1
                sys.stdout.write(f"{step}: failed, try it again: {type(error).__name__}\n")
    return not failures
