"""DML that can change other tables than its targets only through their triggers, views and foreign keys."""

import msgspec
import pytest

from databus_changes.doubts import Doubt
from databus_changes.statements import StatementReader
from unit.changes.statement_samples import SOURCE, logged, no_tables


def targets(query: str, sql_mode: int = 0) -> set[str]:
    doubts: list[Doubt] = []
    event = msgspec.structs.replace(logged(query), sql_mode=sql_mode)
    StatementReader(SOURCE, no_tables(), doubts.append).read(event)
    [doubt] = doubts
    assert (doubt.tables, "shop" in doubt.schemas) == (frozenset(), True)
    return {".".join(table) for table in doubt.targets}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("insert into t values (1, 'f(1)'), (now(), concat('a', upper(@b)))", {"shop.t"}),
        ("insert into t (a, b) values (1, 2) on duplicate key update a = values(a)", {"shop.t"}),
        ("insert ignore `shop` . `t` (a) values (1)", {"shop.t"}),
        ("replace t (a) values (replace('a', 'b', 'c'))", {"shop.t"}),
        ("insert into now (a) values (1)", {"shop.now"}),
        ("update t set a = a + (b * 2) where a in (1, 2) and (b > 1 or not (c)) order by a", {"shop.t"}),
        ("update t, club.member m set t.a = m.a where t.b = m.b", {"shop.t", "club.member"}),
        ("update audit join t using (a) set t.a = 1", set()),
        ("delete from t where a = date_sub(now(6), interval 1 day) limit 10", {"shop.t"}),
        ("delete low_priority quick ignore from t partition (p0) where (a = 1)", {"shop.t"}),
        ("load data infile 'x' into table t ignore 1 lines (a, @b) set c = left(@b, 1)", {"shop.t"}),
        # what may call a stored function
        ("insert into t values (f(1))", set()),
        ("insert into t values (`now`())", set()),
        ("insert into t values (shop.now())", set()),
        ("insert into t values (now ())", set()),
        ("insert into t values (t(1))", set()),
        ("update t set a = 1 where f(b)", set()),
        # what reads other tables, which may be views
        ("insert into t select 1", set()),
        ("insert into t table u", set()),
        ("replace into t values ((table u))", set()),
        ("update t set a = (select max(a) from u)", set()),
        ("delete t from t, u where t.a = u.a", set()),
        ("delete from t using t join u", set()),
        ("with x as (select 1) delete from t", set()),
        ("load data infile 'x' into table t (a) set b = (table u)", set()),
        # what is no DML, or several statements
        ("call p()", set()),
        ("insert into t values (1); delete from u", set()),
    ],
)
def test_the_targets_are_known_if_nothing_else_is_read_or_called(query: str, expected: set[str]) -> None:
    assert targets(query) == expected


def test_in_oracle_mode_a_function_needs_no_parentheses() -> None:
    assert targets("insert into t values (f)", sql_mode=1 << 9) == set()
