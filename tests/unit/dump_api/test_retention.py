"""Which dumps retention deletes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from databus_core.events import Table
from databus_core.manifest import Manifest, Mode, State
from databus_core.settings import Dumps
from databus_dump_api.retention import expired

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
A_B = ("shop.a", "shop.b")


@dataclass
class Taken:
    """A dump, by its tables and what was requested; the tables are those of schema `shop`."""

    tables: str
    requested: tuple[str, ...] | None = None
    state: State = State.COMPLETE
    mode: Mode = Mode.VIEW

    def manifest(self, day: int) -> Manifest:
        tables = tuple(Table(schema="shop", name=name, columns=()) for name in self.tables.split())
        created = CREATED + timedelta(days=day)
        return Manifest(
            id=str(day),
            pipeline="shop",
            state=self.state,
            mode=self.mode,
            created=created,
            requested=self.requested,
            tables=tables,
        )


@pytest.mark.parametrize(
    ("dumps", "kept"),
    [
        ([Taken("a b")] + [Taken("a", ("shop.a",))] * 3, [0, 2, 3]),
        ([Taken("a b", A_B), Taken("a b", A_B[::-1]), Taken("a b", A_B)], [1, 2]),
        ([Taken("a b"), Taken("a b", A_B), Taken("a b", A_B)], [0, 1, 2]),
        ([Taken("a"), Taken("a b"), Taken("a b c")], [1, 2]),
        ([Taken("a", state=State.FAILED)] + [Taken("a")] * 2, [1, 2]),
        ([Taken("a")] + [Taken("a", state=State.FAILED)] * 3, [0, 2, 3]),
        ([Taken("a", state=State.CANCELLED)] + [Taken("a", state=State.FAILED)] * 2, [1, 2]),
        ([Taken("a")] * 2 + [Taken("a", state=State.PENDING)], [0, 1, 2]),
        ([Taken("a")] * 2 + [Taken("a", mode=Mode.CHUNKED)] * 3, [0, 1, 3, 4]),
    ],
    ids=[
        "dumps of one table do not replace one of two tables",
        "the same tables",
        "dumps of tables by name do not replace the newest dump of all tables",
        "all tables, while tables are created",
        "complete dumps replace a failed one",
        "failed dumps do not replace a complete one",
        "dumps without a result replace one another",
        "a pending dump replaces none",
        "chunked dumps do not replace others",
    ],
)
def test_the_newest_dumps_of_each_set_of_tables_are_kept(dumps: list[Taken], kept: list[int]) -> None:
    manifests = [dump.manifest(day) for day, dump in enumerate(dumps)]
    assert left(manifests, keep=2) == kept


def test_dumps_that_are_young_are_kept_too() -> None:
    manifests = [Taken("a").manifest(day) for day in range(5)]
    assert left(manifests, keep=1, keep_for=2.5 * 86400) == [2, 3, 4]


def left(manifests: list[Manifest], **settings: float) -> list[int]:
    """The days of the dumps that do not expire, on the day after the last."""
    now = CREATED + timedelta(days=len(manifests) - 1, hours=1)
    gone = expired(manifests[::-1], Dumps.model_validate(settings), now)
    assert gone == sorted(gone, key=lambda manifest: manifest.created)
    return [day for day, manifest in enumerate(manifests) if manifest not in gone]
