"""The page of the night drill has the faults of the drill, and shows what was recorded."""

from pathlib import Path

import pytest

from faults.drill import page
from faults.drill.catalogue import FAULTS
from faults.drill.logs import Line
from faults.drill.recorder import Moment, Record, looking_back

_WRITTEN = """# Drill
<!-- made by `make drill`: kafka -->

| after | `/readyz` | metrics | alerts | log, warnings and errors |
|---|---|---|---|---|
| 0:00 | **Kafka stops** | | | |
| 0:15 | publisher-0: 503 Kafka \\| away | publisher 75 s | Stale (publisher): pending | publisher-0 `dependency_lost` |
| 1:00 | publisher-0: 503, as before | publisher 75 s | Stale (publisher): firing |  |
| 1:15 | all ready | publisher 1 s |  |  |

* Fired: Stale (publisher) at 1:00.
* All was quiet after 1:15.

The lines:

```
dependency_lost: why
```

<!-- end of kafka -->
the end
"""


def test_each_fault_has_a_table_on_the_page() -> None:
    for fault in FAULTS:
        assert f"<!-- made by `make drill`: {fault.name} -->\n" in page.PAGE.read_text()


def test_a_row_is_written_when_something_changes_and_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Drill\n<!-- made by `make drill`: kafka -->\nold\n<!-- end of kafka -->\nthe end\n")
    monkeypatch.setattr(page, "PAGE", path)
    away, fresh = {"publisher-0": "503 Kafka | away"}, {"publisher": [75.0], "active readers": [1.0]}
    moments = [
        Moment(0, note="Kafka stops"),
        Moment(15, "", away, fresh, {"Stale (publisher)": "pending"}, [Line("publisher-0", "dependency_lost", "why")]),
        Moment(30, "", away, fresh, {"Stale (publisher)": "pending"}),
        Moment(60, "", away, fresh, {"Stale (publisher)": "firing"}),
        Moment(75, "", {}, {"publisher": [0.6]}, {}),
    ]
    page.write({"kafka": page.shown(Record("kafka", moments, fired={"Stale (publisher)": 60.0}, quiet=75))})
    assert path.read_text() == _WRITTEN


def test_alerts_that_look_back_are_known_by_their_rules() -> None:
    found = looking_back()
    assert {"HostRefused": "15m", "DumpFailed": "1h", "Restarts": "30m"}.items() <= found.items()
    assert not {"Stale", "NoLeader", "TableParked", "DumpStorage"} & found.keys()
