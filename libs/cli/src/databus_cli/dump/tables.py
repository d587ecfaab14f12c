"""The tables of a complete dump that `--tables` selects."""

from databus_cli.selection import Selection
from databus_core.errors import DumpUnusable
from databus_core.events import Table
from databus_core.manifest import Manifest, State


def selected_tables(manifest: Manifest, selection: Selection) -> list[Table]:
    """Return the selected tables. Raises DumpUnusable if there are none, or if the dump is not complete."""
    if manifest.state is not State.COMPLETE:
        why = f": {manifest.error}" if manifest.error else ""
        raise DumpUnusable(f"dump {manifest.id} is {manifest.state}, not complete{why}")
    tables = [table for table in manifest.tables if selection.table(table.schema, table.name)]
    if not tables:
        raise DumpUnusable(f"dump {manifest.id} has none of the selected tables")
    return tables
