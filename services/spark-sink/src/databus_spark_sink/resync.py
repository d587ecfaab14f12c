"""The command `resync`: let the sink load mirrors again, each from a new dump, beside the stream."""

import sys
import time

from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_core.errors import UsageError
from databus_core.events import full_name
from databus_core.table_filter import TableFilter
from databus_spark.folder import Folder
from databus_spark.layout import Layout
from databus_spark_sink.loads.requests import FAILED, Requests
from databus_spark_sink.status_line import StatusLine
from databus_spark_sink.tables import TableStates

_POLL_SECONDS = 0.5


def resync(spark: SparkSession, layout: Layout, tables: list[str], *, wait: bool) -> bool:
    """Request that the sink loads the tables that match these patterns again; print what became of each.

    With `wait`, show what the sink does until it has loaded all, and return whether it has. Raises UsageError if the
    lake has no table that matches a pattern.
    """
    requests = Requests(spark, layout)
    requested = {requests.add(name): name for name in _chosen(spark, layout, tables)}
    results = _watch(requests, requested) if wait else dict.fromkeys(requested.values(), "requested")
    if wait:
        parked = TableStates(spark, layout.tables).parked
        results |= {name: f"parked: {parked[name].reason}" for name in results.keys() & parked.keys()}
    for name, result in sorted(results.items()):
        sys.stdout.write(f"{full_name(*name)}: {result}\n")
    return all(result in {"requested", "loaded"} for result in results.values())


def _chosen(spark: SparkSession, layout: Layout, tables: list[str]) -> list[TableName]:
    """Return the tables that match patterns and have a mirror, or are parked before they had one.

    A name without wildcards may be that of a table that the lake does not know yet.
    """
    states, chosen = TableStates(spark, layout.tables), TableFilter(tables)
    known = [name for name in states.known if chosen.matches(*name)]
    names = [name for name in known if name in states.parked or Folder(spark, layout.mirror(*name)).exists]
    unmatched = chosen.unmatched(names)
    if patterns := [each for each in unmatched if "*" in each or "?" in each or "." not in each]:
        raise UsageError(f"the lake has no mirror of {', '.join(patterns)}: its folder mirror/ shows those that it has")
    for each in unmatched:
        schema, _, table = each.partition(".")
        names.append((schema, table))
    return names


def _watch(requests: Requests, requested: dict[str, TableName]) -> dict[TableName, str]:
    """Show the requests until all have ended, and return the results."""
    results: dict[TableName, str] = {}
    with StatusLine() as line:
        while len(results) < len(requested):
            for request, name in requested.items():
                if name in results:
                    continue
                step = requests.text(request)
                if step is None or step.startswith(FAILED):
                    results[name] = step or "loaded"
                    requests.remove(request)
                line.show(full_name(*name), "ended" if step is None else step or "waiting for the sink")
            time.sleep(_POLL_SECONDS)
    return results
