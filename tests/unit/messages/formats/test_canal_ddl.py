"""The type that canal's formats give to a DDL statement."""

import pytest

from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Table
from databus_messages.formats.base import DdlStatement
from databus_messages.formats.canal_ddl import describe

BEGIN = Begin(1, "", "mysql-bin.000001", 1, 0, 0)


def statement(action: Action, query: bytes, name: str = "t") -> DdlStatement:
    return DdlStatement(Table(schema="s", name=name, columns=()), BEGIN, action, query, 4, 99)


@pytest.mark.parametrize(
    ("action", "sql", "expected"),
    [
        (Action.CREATE, "create table `s`.t (a int)", "CREATE"),
        (Action.DROP, "DROP TABLE IF EXISTS s.t, s.u", "ERASE"),
        (Action.TRUNCATE, "truncate s.t", "TRUNCATE"),
        (Action.ALTER, "rename table s.a to s.t", "RENAME"),
        (Action.ALTER, "ALTER TABLE `s`.t ADD COLUMN c INT DEFAULT (1,2) AFTER `key`", "ALTER"),
        (Action.ALTER, "ALTER TABLE `s`.t ADD COLUMN `index` INT", "ALTER"),
        (Action.ALTER, "/* hint */ alter /*!40000 online */ table s.`t``x` add unique key k (a, b)", "CINDEX"),
        (Action.ALTER, "ALTER TABLE IF EXISTS t WAIT 5 ADD INDEX (a), ADD FULLTEXT (b), ALGORITHM=INPLACE", "CINDEX"),
        (Action.ALTER, "ALTER TABLE s.t ADD CONSTRAINT u UNIQUE (a)", "CINDEX"),
        (Action.ALTER, "ALTER TABLE s.t ADD CONSTRAINT UNIQUE (a)", "CINDEX"),
        (Action.ALTER, "ALTER TABLE s.t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (a)", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.t ADD PRIMARY KEY (a)", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.t -- one\n DROP KEY a, DROP INDEX b", "DINDEX"),
        (Action.ALTER, "ALTER TABLE s.t DROP INDEX a, ADD INDEX a (b)", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.t ADD INDEX (a), COMMENT 'x, RENAME TO y'", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.t RENAME INDEX a TO b", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.t RENAME COLUMN a TO b", "ALTER"),
        (Action.ALTER, "ALTER TABLE s.a RENAME s.t", "RENAME"),
        (Action.ALTER, "ALTER TABLE s.a ADD c INT, RENAME TO s.t", "RENAME"),
    ],
)
def test_the_type_follows_from_the_words_of_the_statement(action: Action, sql: str, expected: str) -> None:
    assert describe(statement(action, sql.encode())) == (expected, "t", sql)


def test_ddl_on_a_database_has_the_type_query_and_no_table() -> None:
    assert describe(statement(Action.DROP, b"drop database s", name="")) == ("QUERY", "", "drop database s")


def test_a_statement_that_is_not_utf8_is_rejected_with_its_tables_name() -> None:
    with pytest.raises(PoisonError, match=r"a statement on s\.t is not in UTF-8"):
        describe(statement(Action.CREATE, b"create table s.t (a int comment '\xff')"))
