"""DML that is logged as a statement, if club.member and all tables of shop except audit are captured."""

import pytest

from databus_changes.doubts import stop
from databus_changes.statements import StatementReader
from databus_core.errors import StatementFormat
from databus_core.metrics.reader import REGISTRY
from unit.changes.statement_samples import NOTHING, SOURCE, logged, no_tables, published


@pytest.fixture
def statements() -> StatementReader:
    return StatementReader(SOURCE, no_tables(), stop)


@pytest.mark.parametrize(
    ("query", "stops"),
    [
        ("insert into t values ('shop.t', 'shop', 1)", False),
        ("call p()", False),
        ("create table t select * from shop.t", False),  # it only reads shop.t
        ("replace into shop.t values (1)", True),
        ("delete b from other.a join `shop` . `b` using (c)", True),
        ('insert into "club"."member" values (1)', True),
        ("update mysql.user set a=1", False),
    ],
)
def test_in_another_schema_dml_stops_the_reader_only_if_it_names_a_captured_schema(
    statements: StatementReader, query: str, stops: bool
) -> None:
    before = skipped()
    if stops:
        with pytest.raises(StatementFormat):
            statements.read(logged(query, "other"))
    else:
        assert published(statements, logged(query, "other")) == NOTHING
    assert skipped() == before


@pytest.mark.parametrize(
    "query",
    [
        "REPLACE INTO `percona`.`checksums` (db, cnt) SELECT 'shop', COUNT(*) FROM `shop`.`t` FORCE INDEX (`PRIMARY`)",
        "INSERT INTO mysql.rds_heartbeat2(id, value) values (1, 7) ON DUPLICATE KEY UPDATE value = 7",
        "insert /* from t */ low_priority ignore other.x set a = (select max(a) from t)",
        "insert into audit partition (p0) values (1)",  # a table of a captured schema that is excluded
        'replace "other"."x" table t',
        "update other.x set a = 1",
        "update low_priority other.x partition (p0) as t set t.a = 1 order by a limit 1",
        "update other.x t join (select * from shop.t) u on t.a = u.a, other.y left join audit using (a) set t.a = u.a",
        "delete from other.x where a in (select a from t)",
        "delete quick from audit",
        "delete x from other.x join shop.t on t.a = x.a",
        "delete a.*, other.y.* from other.x as a, other.y straight_join t",
        "delete from a using other.x a natural join t where a = 1",
        "with a as (select 1), b (c) as (select * from t) delete from other.x where a in (select c from b)",
        "load data infile 'x' replace into table other.x fields terminated by ',' (a) set b = 1",
        "load xml infile 'x' into table other.x",
        "/*!50000 insert */ into other.x values (')', '(')",
        "set statement max_statement_time = 1, sql_mode = concat('a', 'b') for insert into other.x select * from t",
    ],
)
def test_dml_that_changes_only_tables_that_are_not_captured_is_logged_and_counted(
    statements: StatementReader, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    before = skipped()
    for thread in (1, 2):
        assert published(statements, logged(query, thread=thread)) == NOTHING
    assert skipped() == before + 2
    tables = [record.fields["table"] for record in caplog.records]
    assert tables
    assert len(tables) == len(set(tables))
    assert "shop.t" not in tables
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def skipped() -> float:
    return REGISTRY.get_sample_value("databus_reader_statements_skipped_total") or 0


@pytest.mark.parametrize(
    "query",
    [
        "insert into other.x values (1); delete from t",
        "insert into SHOP.T values (1)",  # the server may treat names as if they were in lower case
        "insert other.x.y values (1)",
        "insert into",
        "update other.x join t using (a) set x.a = 1",  # `a` could be a column of either table
        "update other.y, (other.x join t using (a)) set t.a = 1",
        "update other.x use index for order by (i), t set t.a = 1",
        "update other.x for",
        "delete t from other.x t join shop.t",
        "delete a from other.x",
        "delete b from other.x join (select * from t) b",
        "delete from other.x, t using other.x join t",
        "delete other.x, t from other.x join t",
        "delete from other.x, t",
        "delete history from other.x",
        "with a as (select 1) select f() from other.x for update",
        "set statement max_statement_time = 1",
        "load index into cache other.x",
        "call other.p()",
        "update quick audit set a = 1",  # QUICK is a modifier of DELETE only; here it is a table, and audit its alias
        "update other.x join other.y on x.set = y.a, t set t.a = 1",  # after a dot any word is a name
        "delete t from shop.T, other.t",
        "delete t from other.t use index for order by (i), shop.t",
    ],
)
def test_dml_whose_tables_are_not_certain_stops_the_reader(statements: StatementReader, query: str) -> None:
    with pytest.raises(StatementFormat):
        statements.read(logged(query))
