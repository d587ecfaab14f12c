"""Which values follow from rows that lack columns, and which rows remain in doubt (`publisher.publish_partial`)."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from databus_binlog import ABSENT, FieldType, Flavor, Value
from databus_binlog.events import Rows
from databus_changes.partial_rows import complete
from databus_core.errors import FatalError
from databus_core.events import Column, RowsEvent, Table
from databus_wire.packed_rows import PackedRows

COLUMNS = (
    Column(name="id", type="int", raw_type="int"),
    Column(name="a", type="int", raw_type="int", nullable=True),
    Column(name="b", type="text", raw_type="text", nullable=True),
    Column(name="c", type="longblob", raw_type="longblob"),
)
TABLE = Table(schema="shop", name="t", columns=COLUMNS, primary_key=(0,), charset="utf8mb4")
MARIADB: Flavor = "mariadb"


def rows_event(action: Any, *images: Sequence[Value]) -> Rows:
    packed = msgspec.Raw(msgspec.msgpack.encode(images))
    return Rows(
        time=0, server_id=1, file="f", start=4, end=9, table="", table_id=1, action=action, count=len(images),
        complete=False, statement_end=True, rows=packed,
    )  # fmt: skip


def completed(
    action: Any, *images: Sequence[Value], table: Table = TABLE, flavor: Flavor = "mysql"
) -> tuple[list[list[bytes | None]], bool] | None:
    found = complete(rows_event(action, *images), table, flavor)
    return found and (PackedRows(found.rows).unpack(), found.partial)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_an_insert_gets_the_defaults_of_columns_that_it_does_not_set(flavor: Flavor) -> None:
    found = completed("insert", [b"1", None, ABSENT, ABSENT], [b"2", b"3", ABSENT, ABSENT], flavor=flavor)
    assert found == ([[b"1", None, None, b""], [b"2", b"3", None, b""]], False)


def test_an_updated_row_keeps_the_values_that_only_the_row_before_has() -> None:
    before = [b"1", b"2", b"text", b"bytes"]
    assert completed("update", before, [b"1", b"3", ABSENT, ABSENT]) == (
        [before, [b"1", b"3", b"text", b"bytes"]],
        False,
    )


def test_a_value_that_neither_image_has_stays_absent() -> None:
    images = [b"1", b"2", ABSENT, ABSENT], [b"1", b"3", b"new", ABSENT]
    assert completed("update", *images, *images) == ([*map(list, images * 2)], True)
    assert completed("delete", images[0]) == ([list(images[0])], True)


@pytest.mark.parametrize(
    ("action", "images"),
    [
        ("insert", [[b"1", ABSENT, b"x", b"y"]]),
        ("update", [[b"1", ABSENT, ABSENT, ABSENT], [ABSENT, b"3", ABSENT, ABSENT]]),
        ("update", [[b"1", ABSENT, ABSENT, ABSENT], [b"1", b"3", b"x", b"y"]]),
        ("update", [[b"1", b"2", b"x", b"y"], [ABSENT, b"3", ABSENT, ABSENT]]),
        ("delete", [[b"1", ABSENT, b"x", b"y"]]),
    ],
)
def test_rows_that_lack_a_column_of_another_type_are_in_doubt(action: str, images: list[list[Value]]) -> None:
    assert completed(action, *images) is None


@pytest.mark.parametrize("key", [{"primary_key": (2,)}, {"primary_key": (0, 2)}])
def test_rows_that_lack_their_key_are_in_doubt(key: dict[str, Any]) -> None:
    table = msgspec.structs.replace(TABLE, **key)
    assert completed("delete", [b"1", b"2", ABSENT, b"x"], table=table) is None
    assert completed("delete", [b"1", b"2", b"x", ABSENT], table=table) is not None


def test_mariadb_does_not_log_a_virtual_column_whose_value_may_have_changed() -> None:
    virtual = msgspec.structs.replace(COLUMNS[2], generated=True, virtual=True)
    table = msgspec.structs.replace(TABLE, columns=(*COLUMNS[:2], virtual, COLUMNS[3]))
    update = [b"1", b"2", ABSENT, b""], [b"1", b"3", ABSENT, b""]
    assert completed("update", *update, table=table, flavor=MARIADB) is None
    assert completed("update", [b"1", b"2", b"2", b""], update[1], table=table, flavor=MARIADB) is None
    assert completed("insert", update[0], table=table, flavor=MARIADB) is None
    assert completed("delete", update[0], table=table, flavor=MARIADB) == ([list(update[0])], True)
    assert completed("update", *update, table=table) == ([*map(list, update)], True)


def test_of_a_table_that_only_mariadbs_binlog_describes_it_is_not_known_which_columns_are_virtual() -> None:
    table = msgspec.structs.replace(TABLE, charset="")
    update = [b"1", b"2", ABSENT, b""], [b"1", b"3", ABSENT, b""]
    assert completed("update", *update, table=table, flavor=MARIADB) is None
    assert completed("update", *update, table=table) is not None


async def test_partial_rows_are_published_only_if_the_setting_permits_it(make, log) -> None:
    key, text = log.table("t", "id b").columns
    text = msgspec.structs.replace(text, type=FieldType.BLOB, metadata=2, nullable=True, charset="binary")
    logged = msgspec.structs.replace(log.table("t", "id b"), columns=(key, text))
    packed = msgspec.Raw(msgspec.msgpack.encode([[b"1", ABSENT]]))
    lacking = msgspec.structs.replace(log.rows(logged, "delete", complete=False), rows=packed)
    events = log.gtid(), log.query("BEGIN"), lacking, log.rows(logged), log.xid()

    async def translated(*, partial: bool) -> list[RowsEvent]:
        found = await make(partial=partial).of(*events, table_maps=[logged])
        return [event for event in found if isinstance(event, RowsEvent)]

    with pytest.raises(FatalError, match=r"lack columns \(b\)"):
        await translated(partial=False)
    assert [(event.partial, event.row) for event in await translated(partial=True)] == [(True, 0), (False, 1)]
