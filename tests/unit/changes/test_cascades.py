"""Which tables a deleted or updated row changes through foreign keys, and the warning about captured ones."""

import logging

import pytest

from databus_binlog.errors import MissingPrivilege, ServerRefused
from databus_changes.cascades import Cascades, foreign_keys, read_cascades, warn_of_cascades
from unit.changes.statement_samples import SOURCE


def cascades(*lines: str) -> Cascades:
    """Make cascades of lines `child: foreign key` in schema shop."""
    parts = (line.partition(": ") for line in lines)
    return Cascades([key for child, _, text in parts for key in foreign_keys(("shop", child), constraint(text))])


def constraint(text: str) -> str:
    return f"CREATE TABLE `x` (\n  `a` int,\n  CONSTRAINT `fk` FOREIGN KEY {text},\n  KEY `k` (`a`)\n) ENGINE=InnoDB"


def names(tables: frozenset[tuple[str, str]]) -> str:
    return " ".join(sorted(".".join(table) for table in tables))


@pytest.mark.parametrize(
    ("text", "deleted", "updated"),
    [
        ("(`p`) REFERENCES `p` (`id`)", "", ""),
        ("(`p`) REFERENCES `p` (`id`) ON DELETE CASCADE", "shop.c", ""),
        ("(`p`) REFERENCES `p` (`id`) ON UPDATE CASCADE", "", "shop.c"),
        ("(`p`) REFERENCES `p` (`id`) ON DELETE SET NULL ON UPDATE SET NULL", "shop.c", "shop.c"),
        ("(`p`) REFERENCES `p` (`id`) ON DELETE SET DEFAULT ON UPDATE RESTRICT", "shop.c", ""),
        ("(`p`) REFERENCES `p` (`id`) ON DELETE NO ACTION ON UPDATE CASCADE", "", "shop.c"),
        ('("p", "q") REFERENCES "shop"."p" ("id", "k") ON DELETE CASCADE', "shop.c", ""),
        ("(p) REFERENCES p (id) ON DELETE CASCADE", "shop.c", ""),
        ("(`p`) REFERENCES `other`.`p` (`id`) ON DELETE CASCADE", "", ""),
    ],
)
def test_the_actions_of_a_foreign_key_are_read(text: str, deleted: str, updated: str) -> None:
    found = cascades(f"c: {text}")
    assert names(found.deleted(("shop", "p"))) == deleted
    assert names(found.updated(("shop", "p"))) == updated


def test_only_lines_of_foreign_keys_are_read() -> None:
    definition = (
        "CREATE TABLE `x` (\n  `CONSTRAINT` int COMMENT 'CONSTRAINT `a` FOREIGN KEY (',\n"
        "  CONSTRAINT `c` CHECK (`a` <> ' FOREIGN KEY ('),\n"
        "  CONSTRAINT `FOREIGN KEY (``` FOREIGN KEY (`a`) REFERENCES `p,` (`i``d`) ON DELETE CASCADE\n)"
    )
    [key] = foreign_keys(("shop", "x"), definition)
    assert (key.parent, key.columns, key.parent_columns) == (("shop", "p,"), ("a",), ("i`d",))


def test_a_delete_changes_children_of_children() -> None:
    found = cascades(
        "child: (`p`) REFERENCES `p` (`id`) ON DELETE CASCADE",
        "grandchild: (`c`) REFERENCES `child` (`id`) ON DELETE SET NULL",
        "beyond: (`g`) REFERENCES `grandchild` (`id`) ON DELETE CASCADE ON UPDATE CASCADE",
        "follower: (`c`) REFERENCES `grandchild` (`C`) ON DELETE CASCADE ON UPDATE CASCADE",
    )
    assert names(found.deleted(("shop", "p"))) == "shop.child shop.follower shop.grandchild"
    assert names(found.deleted(("shop", "grandchild"))) == "shop.beyond shop.follower"
    assert found.updated(("shop", "p")) == found.columns(("shop", "p")) == frozenset()


def test_an_update_goes_on_only_with_the_columns_that_change() -> None:
    found = cascades(
        "child: (`p`) REFERENCES `p` (`id`) ON UPDATE CASCADE",
        "by_id: (`c`) REFERENCES `child` (`id`) ON UPDATE CASCADE",
        "by_p: (`c`) REFERENCES `child` (`p`) ON UPDATE CASCADE ON DELETE CASCADE",
    )
    assert names(found.updated(("shop", "p"))) == "shop.by_p shop.child"
    assert found.columns(("shop", "child")) == {"id", "p"}
    assert found.columns(("shop", "by_p")) == frozenset()


def test_foreign_keys_in_a_circle_are_followed_once() -> None:
    found = cascades(
        "a: (`parent`) REFERENCES `a` (`id`) ON DELETE CASCADE",
        "a: (`b`) REFERENCES `b` (`id`) ON DELETE CASCADE",
        "b: (`a`) REFERENCES `a` (`id`) ON DELETE CASCADE",
    )
    assert names(found.deleted(("shop", "a"))) == names(found.deleted(("shop", "b"))) == "shop.a shop.b"


class Database:
    """Answers with the foreign keys of some tables, given as text or as the error of SHOW CREATE TABLE."""

    def __init__(self, tables: dict[tuple[str, str], str | Exception], native: str | None = None) -> None:
        self._tables = tables
        self._native = native

    async def query(self, sql: str, args: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        if sql.startswith("SHOW GLOBAL VARIABLES"):
            return [("innodb_native_foreign_keys", self._native)] if self._native else []
        if sql.startswith("SHOW CREATE TABLE"):
            [answer] = [text for (schema, name), text in self._tables.items() if sql.endswith(f" `{schema}`.`{name}`")]
            if isinstance(answer, Exception):
                raise answer
            return [("x", constraint(answer))]
        return list(self._tables)


CHILD = "(`p`) REFERENCES `p` (`id`) ON DELETE CASCADE"


async def test_tables_that_cannot_be_read_are_left_out() -> None:
    dropped, hidden = ServerRefused("server error 1146"), MissingPrivilege("SELECT denied")
    found = await read_cascades(Database({("shop", "a"): dropped, ("shop", "b"): hidden, ("shop", "c"): CHILD}))
    assert found.children() == {("shop", "c"): {("shop", "p")}}


@pytest.mark.parametrize("native", [None, "ON"])
async def test_captured_children_are_named_with_their_parents(
    caplog: pytest.LogCaptureFixture, native: str | None
) -> None:
    restrict = CHILD.replace("CASCADE", "RESTRICT")
    database = Database({("shop", "c"): CHILD, ("shop", "r"): restrict, ("shop", "audit"): CHILD}, native)
    await warn_of_cascades(database, SOURCE, "db1:3306")
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "database db1:3306: foreign keys change rows without logging them, so messages lack these changes: "
        "shop.c (of shop.p)"
    )


@pytest.mark.parametrize(("parent", "warned"), [("`p`", False), ("`other`.`p`", True)])
async def test_children_that_are_loaded_again_cause_no_warning(
    caplog: pytest.LogCaptureFixture, parent: str, warned: bool
) -> None:
    database = Database({("shop", "c"): CHILD.replace("REFERENCES `p`", f"REFERENCES {parent}")})
    await warn_of_cascades(database, SOURCE, "db1:3306", heal=True)
    assert bool(caplog.records) == warned


async def test_only_some_of_many_children_are_named(caplog: pytest.LogCaptureFixture) -> None:
    await warn_of_cascades(Database({("shop", f"c{n}"): CHILD for n in range(21)}), SOURCE, "db1:3306")
    [record] = caplog.records
    assert record.getMessage().endswith("shop.c18 (of shop.p), shop.c19 (of shop.p), …")


@pytest.mark.parametrize(
    "database",
    [Database({("shop", "c"): CHILD}, "OFF"), Database({("shop", "audit"): CHILD}), Database({})],
    ids=["logged", "not captured", "none"],
)
async def test_there_is_no_warning_if_all_captured_changes_are_logged(
    caplog: pytest.LogCaptureFixture, database: Database
) -> None:
    await warn_of_cascades(database, SOURCE, "db1:3306")
    assert caplog.records == []
