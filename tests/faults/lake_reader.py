"""Reads the lake with delta-rs, which the sink does not use."""

import json
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from devstack.demo.compare import read_mirror

#: delta-rs does not know this feature, but reads such a table's files
_WIDENING = "typeWidening"


def read_rows(mirror: Path) -> list[dict[str, Any]]:
    """Read the rows of a mirror, also of one with a widened column."""
    try:
        return read_mirror(mirror)
    except (DeltaError, OSError) as error:
        if _WIDENING not in str(error) and "TypeWidening" not in str(error):
            raise
    with TemporaryDirectory(dir=mirror.parent.parent) as folder:
        copy = Path(folder) / mirror.name
        shutil.copytree(mirror, copy, copy_function=os.link)
        log = copy / "_delta_log"
        for summary in {*log.glob("*checkpoint*"), *log.glob("*.crc")}:  # they have the features, too
            summary.unlink()
        for commit in log.glob("*.json"):
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            for features in (each["protocol"] for each in actions if "protocol" in each):
                for kind in ("readerFeatures", "writerFeatures"):
                    features[kind] = [name for name in features.get(kind, []) if not name.startswith(_WIDENING)]
            commit.unlink()  # it is the same file as the mirror's
            commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
        return read_mirror(copy)


def parked_tables(lake: Path) -> dict[str, str]:
    """Return the tables that the sink has parked, with the reasons."""
    path = lake / "_databus" / "tables"
    if not path.exists():
        return {}
    query = "SELECT \"table\", reason FROM t WHERE state = 'parked'"
    batch = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    names, reasons = (column.to_pylist() for column in batch.columns)
    return dict(zip(names, reasons, strict=True))
