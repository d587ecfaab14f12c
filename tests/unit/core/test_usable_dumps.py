"""With which dump a consumer can begin."""

from datetime import UTC, datetime
from typing import Any

import pytest

from databus_core.manifest import Manifest, State
from databus_core.progress import Progress, Reset, Routes
from databus_core.settings import Settings
from databus_core.usable_dumps import is_usable
from integration.sink_peers import describe_table

TABLES = (describe_table("items", "id int(11)"), describe_table("other", "id int(11)"))
SETTINGS = Settings(name="shop")
WANTED = ["shop.items", "shop.o*"]


def dump(**more: Any) -> Manifest:
    values = {"pipeline": "shop", "state": State.COMPLETE, "tables": TABLES, "transaction": 7} | more
    return Manifest(id="dump-1", created=datetime.now(UTC), **values)


@pytest.mark.parametrize(
    ("manifest", "expected", "what"),
    [
        (dump(), True, "of all tables"),
        (dump(requested=("*.*",)), True, "of all tables, too"),
        (dump(requested=("shop.o*", "crm.*", "shop.items")), True, "of more tables"),
        (dump(requested=("shop.items", "shop.other")), False, "other tables match the pattern, too"),
        (dump(tables=TABLES[:1]), False, "it is older than shop.other"),
        (dump(pipeline="crm"), False, "another pipeline"),
        (dump(state=State.RUNNING), False, "not complete"),
        (dump(rules="another"), False, "dump-api has other rules"),
    ],
)
def test_a_consumer_begins_with_a_dump_that_has_all_its_tables(manifest: Manifest, expected: bool, what: str) -> None:
    assert is_usable(manifest, Progress(transaction=9), SETTINGS, WANTED) == expected, what


@pytest.mark.parametrize("progress", [Progress(reset=Reset(8)), Progress(routes=Routes("", after=8), reset=Reset(3))])
def test_a_consumer_does_not_begin_with_a_dump_of_before_a_reset_or_other_rules(progress: Progress) -> None:
    assert not is_usable(dump(), progress, SETTINGS, WANTED)
    assert is_usable(dump(transaction=8), progress, SETTINGS, WANTED)
