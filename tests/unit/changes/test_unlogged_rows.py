"""ALTER TABLE statements that remove rows, if club.member and all tables of shop except audit are captured."""

import msgspec
import pytest

from databus_changes.doubts import Doubt, Reason, stop
from databus_changes.statements import StatementReader
from databus_core.errors import FatalError
from unit.changes.statement_samples import SOURCE, logged, no_tables, published


@pytest.fixture
def doubts() -> list[Doubt]:
    return []


@pytest.fixture
def statements(doubts: list[Doubt]) -> StatementReader:
    return StatementReader(SOURCE, no_tables(), doubts.append)


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("alter table t exchange partition p with table u", {"shop.t", "shop.u"}),
        ("ALTER TABLE `a b` EXCHANGE PARTITION `p` WITH TABLE `club`.`member`", {"shop.a b", "club.member"}),
        ("alter table t exchange partition p with table u without validation", {"shop.t", "shop.u"}),
        ("alter table t exchange partition `table` with table audit", {"shop.t"}),
        ("alter table audit exchange partition p with table t", {"shop.t"}),
        ('alter table "other"."x" exchange partition p with table "shop"."t"', {"shop.t"}),
        (
            "alter /* x */ table shop . t -- y\n exchange partition p # z\n with table /*!50600 u */",
            {"shop.t", "shop.u"},
        ),
        ("alter table t truncate partition p0, p1", {"shop.t"}),
        ("alter table if exists t truncate partition all", {"shop.t"}),
        ("alter online table t drop partition p", {"shop.t"}),
        ("alter table t nowait drop partition if exists p, q", {"shop.t"}),
        ("/*!50100 alter table t drop partition p */", {"shop.t"}),
        ("set statement lock_wait_timeout = 1 for alter table t drop partition p", {"shop.t"}),
        ("alter table t discard tablespace", {"shop.t"}),
        ("alter table t import tablespace;", {"shop.t"}),
        ("alter table t discard partition p, q tablespace", {"shop.t"}),
        ("alter table t import partition all tablespace", {"shop.t"}),
        ("alter table t convert partition p to table other.x", {"shop.t"}),
        ("alter table t convert partition p to table u with validation", {"shop.t", "shop.u"}),
        ("alter table other.x convert table shop.u to partition p values less than (9)", {"shop.u"}),
        ("alter table t drop column a, drop system versioning", {"shop.t"}),
        ("alter ignore table t add unique (a)", {"shop.t"}),
        ("alter online ignore table t rename u, add unique (a)", {"shop.u"}),
        ("alter table t engine=blackhole", {"shop.t"}),
        ("alter table t add b int, comment 'x' engine = 'Blackhole' charset utf8mb4", {"shop.t"}),
        ("alter table t rename other.x, engine `BLACKHOLE`", set()),
        ("alter table audit drop partition p", set()),
        # rows stay
        ("alter table t add partition (partition p values less than (9))", set()),
        ("alter table t partition by hash (a) partitions 4", set()),
        ("alter table t remove partitioning", set()),
        ("alter table t coalesce partition 2", set()),
        ("alter table t reorganize partition p into (partition q values less than (9))", set()),
        ("alter table t rebuild partition p", set()),
        ("alter table t optimize partition all", set()),
        ("alter table t repair partition p", set()),
        ("alter table t add system versioning", set()),
        ("alter table t convert to character set utf8mb4, modify a tinyint, drop b", set()),
        ("alter table t add a double default (rand()), engine=InnoDB, tablespace ts", set()),
        # words that are names or text
        ("alter table exchange partition by hash (a)", set()),
        ("alter table t rename to import partition by key ()", set()),
        ("alter table t add a int after discard tablespace = ts", set()),
        ("alter table t change column engine blackhole int, change discard tablespace int", set()),
        ("alter table t comment 'drop partition p', add `drop` int, add `partition` int", set()),
        ("alter table t add check (engine = 'blackhole')", set()),
        ("alter table t drop system, drop versioning", set()),
        ("create table t (a int) engine=blackhole", set()),
        ("repair table t", set()),
        ("optimize table t", set()),
        ("flush tables t for export", set()),
    ],
)
def test_a_statement_that_removes_or_replaces_rows_is_a_doubt_about_the_captured_tables(
    statements: StatementReader, doubts: list[Doubt], query: str, tables: set[str]
) -> None:
    statements.read(logged(query))
    assert {".".join(table) for doubt in doubts for table in doubt.tables} == tables
    assert [(doubt.reason, doubt.schemas, doubt.whole_transaction) for doubt in doubts] == [
        (Reason.UNLOGGED_ROWS, frozenset(), False)
    ] * bool(tables)


def test_the_statement_itself_is_still_published(statements: StatementReader, doubts: list[Doubt]) -> None:
    assert published(statements, logged("alter table t exchange partition p with table u")) == ["alter shop.t"]
    assert len(doubts) == 1


def test_a_statement_that_failed_may_have_removed_rows(statements: StatementReader, doubts: list[Doubt]) -> None:
    statements.read(msgspec.structs.replace(logged("alter table t drop partition p"), error_code=1317))
    assert len(doubts) == 1


def test_names_are_folded_as_on_the_server(doubts: list[Doubt]) -> None:
    statements = StatementReader(SOURCE, no_tables(folds_names=True), doubts.append)
    statements.read(logged("ALTER TABLE Shop.T EXCHANGE PARTITION P WITH TABLE Club.Member"))
    [doubt] = doubts
    assert doubt.tables == {("shop", "t"), ("club", "member")}


def test_rows_of_temporary_tables_are_not_in_doubt(statements: StatementReader, doubts: list[Doubt]) -> None:
    statements.read(logged("create temporary table t (a int)"))
    statements.read(logged("alter ignore table t add unique (a)"))
    assert doubts == []


def test_the_error_names_the_position_and_the_tables() -> None:
    statements = StatementReader(SOURCE, no_tables(), stop)
    text = (
        r"^ALTER TABLE at binlog\.7:4 may have removed or replaced rows of shop\.t, shop\.u, which no server logs; "
        r"to start over"
    )
    with pytest.raises(FatalError, match=text):
        statements.read(logged("alter table t exchange partition p with table u"))
