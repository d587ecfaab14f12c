"""DDL statements of the binlog, applied to our table schemas, make the tables that the server has."""

import random
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from asyncmy.errors import MySQLError

from common.connections import Execute, session_on
from databus_binlog import Position, Query
from databus_binlog.session import Session
from databus_changes.catalog import read_tables
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import dialect_of
from databus_changes.ddl.statement import parse_statement
from databus_changes.tables import TableName
from databus_core.errors import CannotApply
from databus_core.events import Column, Table
from devstack import Kind, Server

Tables = dict[TableName, Table]

#: statements for both kinds of server
STATEMENTS = [
    # every type by each of its names; default lengths
    "CREATE TABLE ints (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT, e BIGINT, f INT(5) ZEROFILL, g BOOL,"
    " h BOOLEAN NOT NULL, i INTEGER UNSIGNED, j INT1, k INT2, l INT3, m INT4, n INT8, o MIDDLEINT,"
    " p TINYINT(1) UNSIGNED, q BIGINT(3) SIGNED)",
    "CREATE TABLE numbers (a DECIMAL, b DEC(5), c NUMERIC(6,2) UNSIGNED, d FIXED(3,3) ZEROFILL, e FLOAT, f FLOAT(24),"
    " g FLOAT(25), h FLOAT(7,3) UNSIGNED, i DOUBLE, j DOUBLE PRECISION, k REAL, l DOUBLE(8,2), m FLOAT4, n FLOAT8,"
    " o BIT, p BIT(17), q DECIMAL(0))",
    "CREATE TABLE times (a DATE, b TIME, c TIME(0), d TIME(6), e DATETIME, f DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)"
    " ON UPDATE CURRENT_TIMESTAMP(3), g TIMESTAMP NULL, h TIMESTAMP(2) NOT NULL DEFAULT '2020-01-01', i YEAR,"
    " j YEAR(4), k TIMESTAMP DEFAULT NOW() COMMENT 'it''s, (')",
    "CREATE TABLE texts (a CHAR, b CHAR(0), c CHARACTER(7), d VARCHAR(20), e CHARACTER VARYING(9), f CHAR VARYING(3),"
    " g NATIONAL CHAR(3), h NCHAR(2), i NVARCHAR(4), j NATIONAL VARCHAR(5), k NCHAR VARCHAR(6), l NCHAR VARYING(7),"
    " m NATIONAL CHARACTER VARYING(8), n VARCHARACTER(4), o CHAR(3) BYTE, p VARCHAR(5) CHARACTER SET binary,"
    " q CHAR(4) ASCII, r CHAR(4) UNICODE, s CHAR(4) BINARY, t VARCHAR(4) COLLATE latin1_bin, u TEXT CHARSET utf8mb3)",
    "CREATE TABLE blobs (a TINYBLOB, b BLOB, c MEDIUMBLOB, d LONGBLOB, e TINYTEXT, f TEXT, g MEDIUMTEXT, h LONGTEXT,"
    " i BLOB(200), j BLOB(70000), k TEXT(60), l TEXT(70), m TEXT(20000) CHARACTER SET latin1, n TEXT(20000000), o LONG,"
    " p LONG VARCHAR, q LONG VARBINARY, r BINARY, s BINARY(16), t VARBINARY(300), u LONGTEXT CHARACTER SET binary,"
    " v BLOB(255), w BLOB(256), x TEXT(63), y TEXT(64), z TEXT(4294967295), zz BLOB(4294967295))",
    "CREATE TABLE shapes (a GEOMETRY, b POINT, c LINESTRING NOT NULL, d POLYGON, e MULTIPOINT, f MULTILINESTRING,"
    " g MULTIPOLYGON, h GEOMETRYCOLLECTION, j JSON)",
    "CREATE TABLE labels (a ENUM('x','y'), b SET('a','b c','d''e') NOT NULL, c ENUM('ä','ß ') CHARACTER SET latin1,"
    r" d ENUM('a\'b', 'c\\d', \"e\") DEFAULT 'c\\d', e ENUM ( 'n\nl' ) COLLATE utf8mb4_bin)".replace(r"\"", '"'),
    """CREATE TABLE quotes (a ENUM("a''b", 'c""d', "e""f", 'g''h', 'i\\\\j'))""",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    r"""CREATE TABLE backslashes (a ENUM('a\', '\n', "b\") COMMENT 'C:\', b INT /*! COMMENT 'C:\' */ COMMENT "\")""",
    r"ALTER TABLE backslashes ADD c INT COMMENT 'C:\', ADD d SET('it''s', '\')",
    "SET sql_mode = DEFAULT",
    # keys
    "CREATE TABLE serials (id SERIAL, a INT UNIQUE, b INT UNIQUE KEY COMMENT 'b', PRIMARY KEY (b, a))",
    "CREATE TABLE keyed (id INT KEY, b VARCHAR(99), c INT, KEY k (b(10), c DESC), UNIQUE KEY u (c), INDEX (c, id),"
    " UNIQUE (b), CONSTRAINT uc UNIQUE (c, b), FULLTEXT KEY ft (b), CONSTRAINT ck CHECK (c > 1), CHECK (id <> c))",
    "CREATE TABLE last_wins (a INT, b INT AUTO_INCREMENT NULL UNIQUE)",
    "CREATE TABLE last_wins2 (a INT, b INT NULL AUTO_INCREMENT UNIQUE)",
    "CREATE TABLE last_wins3 (a INT, b BIGINT SERIAL DEFAULT VALUE NULL)",
    "ALTER TABLE last_wins MODIFY b BIGINT AUTO_INCREMENT, ADD c INT",
    "CREATE TABLE btree (a INT, b INT AUTO_INCREMENT, PRIMARY KEY USING BTREE (b, a), KEY x USING BTREE (a))",
    "CREATE TABLE parent (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT REFERENCES parent (id) ON DELETE CASCADE, q INT,"
    " CONSTRAINT fk FOREIGN KEY fki (q) REFERENCES parent (id) ON UPDATE NO ACTION ON DELETE SET NULL)",
    # attributes
    "CREATE TABLE made (a INT, b INT AS (a + 1), c INT GENERATED ALWAYS AS (a * 2) STORED, d VARCHAR(9) AS"
    " (CONCAT(a, ',', 'x)')) VIRTUAL COMMENT 'v', e INT DEFAULT -1 CHECK (e < 5), f DOUBLE DEFAULT -1.5e3,"
    " g VARCHAR(9) DEFAULT _latin1'x', h BIT(4) DEFAULT b'101', i VARBINARY(4) DEFAULT x'00', j INT INVISIBLE,"
    " k VARCHAR(9) DEFAULT 'a' NOT NULL, l INT DEFAULT (1 + 2), m VARCHAR(40) DEFAULT (UUID()), n INT DEFAULT NULL)",
    # character sets of tables and schemas
    "CREATE TABLE latin (a CHAR(3), b VARCHAR(3) CHARACTER SET utf8mb4, c TEXT) CHARSET latin1",
    "CREATE TABLE collated (a CHAR(3), b ENUM('a')) ENGINE=InnoDB COLLATE = latin1_bin COMMENT 'charset utf8'",
    "CREATE TABLE part (a CHAR(3)) ENGINE=MyISAM CHARSET latin1",
    "CREATE TABLE whole (a CHAR(3)) ENGINE=MERGE UNION=(part) CHARSET latin1",
    "ALTER TABLE whole UNION=(part), COMMENT 'x'",
    "CREATE TABLE several (a CHAR(3)) DEFAULT CHARACTER SET = utf8mb3 AUTO_INCREMENT 7 ROW_FORMAT=DYNAMIC",
    "ALTER DATABASE CHARACTER SET latin2",
    "CREATE TABLE of_schema (a CHAR(3), b SET('ő'))",
    "ALTER DATABASE COLLATE utf8mb4_bin",
    "CREATE TABLE of_schema2 (a CHAR(3))",
    # other ways to create a table
    "CREATE TABLE IF NOT EXISTS latin (z INT)",
    "CREATE TABLE alike LIKE latin",
    "CREATE TABLE alike2 (LIKE keyed)",
    "CREATE TABLE queried AS SELECT a, b, 1 AS one FROM latin",
    "CREATE TABLE parts (a INT, b DATE) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10),"
    " PARTITION p1 VALUES LESS THAN MAXVALUE COMMENT 'x')",
    "CREATE /*!50000 TABLE */ hinted (a INT /*!50000 UNSIGNED */ NOT NULL, -- first\n b INT # second\n)",
    "/*!40000 ALTER TABLE hinted DISABLE KEYS */",
    "CREATE TABLE executed (a INT /*! NOT NULL */, b INT /*!50000 NOT NULL */, c INT /*M! NOT NULL */,"
    " d INT /*!80000 NOT NULL */, e INT /*!100100 NOT NULL */, f INT /*M!100100 NOT NULL */)",
    "create table `select` (`from` int, `a``b` char(1), `ü` int, `1a` int, 2b int, status int, name char(1))",
    # adding and dropping
    "ALTER TABLE latin ADD d CHAR(2)",
    "ALTER TABLE latin ADD COLUMN e INT FIRST, ADD f INT AFTER a, ADD COLUMN (g INT, h VARCHAR(4)), ADD KEY (g)",
    "ALTER TABLE latin DROP a, DROP COLUMN b",
    "ALTER TABLE latin DROP COLUMN c, ADD COLUMN c BIGINT UNSIGNED AFTER e",
    "ALTER TABLE latin ADD x INT AFTER c, ADD y INT AFTER x, ADD z INT FIRST",
    "ALTER TABLE latin ADD p POINT, ADD (j JSON, KEY (x)), ADD en ENUM('a','b') NOT NULL DEFAULT 'a' AFTER y",
    "ALTER TABLE latin ADD inst INT NOT NULL DEFAULT 5 FIRST, ALGORITHM=INSTANT",
    # changing
    "ALTER TABLE latin MODIFY d VARCHAR(30)",
    "ALTER TABLE latin MODIFY COLUMN d VARCHAR(30) CHARACTER SET utf8mb4 NOT NULL FIRST",
    "ALTER TABLE latin CHANGE e ee BIGINT UNSIGNED AFTER x, MODIFY z TINYINT AFTER ee, CHANGE COLUMN f f SMALLINT",
    "ALTER TABLE latin CHANGE x y INT, CHANGE y x INT",
    "ALTER TABLE latin RENAME COLUMN x TO y, RENAME COLUMN y TO x, ADD w INT AFTER y",
    "ALTER TABLE latin RENAME COLUMN g TO gg, RENAME INDEX g TO gi",
    "ALTER TABLE latin CHANGE gg g INT NOT NULL, DROP INDEX gi, ADD UNIQUE gu (g, d)",
    "ALTER TABLE latin ALTER COLUMN g SET DEFAULT 5, ALTER inst DROP DEFAULT, LOCK=SHARED",
    "ALTER TABLE latin MODIFY w INT INVISIBLE",
    "ALTER TABLE latin ENGINE=InnoDB ROW_FORMAT=COMPACT CHARSET=utf8mb3, COMMENT='it'",
    "ALTER TABLE latin ADD late CHAR(3), ADD late2 TEXT, DEFAULT CHARACTER SET utf8mb4",
    "ALTER TABLE latin FORCE",
    "ALTER TABLE latin DISABLE KEYS",
    # keys again
    "ALTER TABLE latin ADD PRIMARY KEY (g, d(5))",
    "ALTER TABLE latin CHANGE g key_part INT",
    "ALTER TABLE latin DROP PRIMARY KEY, ADD PRIMARY KEY (x)",
    "ALTER TABLE latin DROP COLUMN x, DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "ALTER TABLE latin MODIFY id BIGINT",
    "DROP INDEX `PRIMARY` ON latin",
    "CREATE UNIQUE INDEX made_later ON latin (id, d)",
    "ALTER TABLE latin ADD CONSTRAINT PRIMARY KEY (id), ADD CONSTRAINT c2 CHECK (id > 0), ADD INDEX i2 (id)",
    "DROP INDEX made_later ON latin",
    "ALTER TABLE keyed DROP CONSTRAINT ck, DROP KEY u, DROP KEY k",
    "ALTER TABLE child DROP FOREIGN KEY fk, ADD CONSTRAINT fk2 FOREIGN KEY (q) REFERENCES parent (id)",
    # conversions
    "ALTER TABLE collated ADD (t TINYTEXT, u TEXT, v MEDIUMTEXT, w LONGTEXT, x VARCHAR(9) CHARSET utf8mb4, y TEXT(9))",
    "ALTER TABLE collated CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE collated CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin, ADD z CHAR(1)",
    "ALTER TABLE collated DEFAULT CHARACTER SET utf8mb4",
    "ALTER TABLE collated ADD z2 CHAR(1) AFTER a",
    "ALTER TABLE collated ADD z3 CHAR(4) COLLATE latin2_bin, CONVERT TO CHARACTER SET utf8mb4",
    # partitions
    "ALTER TABLE parts ADD c INT, ADD d INT PARTITION BY HASH (a) PARTITIONS 3",
    "ALTER TABLE parts ADD PARTITION PARTITIONS 2",
    "ALTER TABLE parts REMOVE PARTITIONING",
    "ALTER TABLE parts PARTITION BY LIST (a) (PARTITION p0 VALUES IN (1,2), PARTITION p1 VALUES IN (3))",
    "ALTER TABLE parts DROP PARTITION p0",
    # renaming
    "RENAME TABLE latin TO latin_old, alike TO latin",
    "RENAME TABLE latin_old TO tmp, latin TO latin_old, tmp TO latin",
    "ALTER TABLE latin_old RENAME TO renamed",
    "ALTER TABLE renamed ADD q INT, RENAME AS renamed2",
    "DROP TABLE IF EXISTS renamed2, missing, several",
    "CREATE TABLE several (a INT)",
    "TRUNCATE TABLE several",
    "DROP TABLE several",
    "CREATE TABLE several (b TEXT)",
]  # fmt: skip

#: statements for one kind of server
ONLY: dict[Kind, list[str]] = {
    "mariadb": [
        "CREATE TABLE last_wins4 (a INT, b INT AUTO_INCREMENT NULL PRIMARY KEY)",
        "CREATE TABLE m1 (a INET6, b UUID, c INET4 DEFAULT '1.2.3.4', d VARCHAR(90) COMPRESSED, e TEXT COMPRESSED,"
        " f INT DEFAULT uuid_short(), g INT AS (a IS NULL) PERSISTENT, h YEAR(2),"
        " i CHAR(3) CHARACTER SET utf8mb4 COLLATE uca1400_ai_ci)",
        "CREATE OR REPLACE TABLE m1 (a INT, b JSON, UNIQUE (b))",
        "ALTER TABLE IF EXISTS m1 ADD COLUMN IF NOT EXISTS a INT, ADD COLUMN IF NOT EXISTS c INT AFTER a,"
        " DROP COLUMN IF EXISTS zz, MODIFY IF EXISTS zz INT, CHANGE COLUMN IF EXISTS zz y INT",
        "ALTER TABLE IF EXISTS nothing ADD a INT",
        "ALTER TABLE m1 ADD INDEX IF NOT EXISTS i (a), DROP INDEX IF EXISTS zz",
        "ALTER TABLE m1 RENAME COLUMN IF EXISTS zz TO y",
        "RENAME TABLE IF EXISTS m1 TO m2",
        "ALTER TABLE m2 ADD CONSTRAINT u UNIQUE (c)",
        "ALTER TABLE m2 DROP CONSTRAINT u",
        "ALTER ONLINE TABLE hinted NOWAIT ADD d INT",
        "CREATE TABLE converted (a CHAR(3), b CHAR(4)) CHARSET latin2",
        "ALTER TABLE converted ADD c CHAR(3), CONVERT TO CHARACTER SET utf8mb3, DEFAULT CHARSET = latin1",
        "ALTER TABLE converted DEFAULT CHARSET = latin2, ADD d CHAR(3), CONVERT TO CHARACTER SET utf8mb4",
    ],
    "mysql": [
        "CREATE TABLE serial_null (id SERIAL NULL, a INT NOT SECONDARY, b INT NOT SECONDARY NOT NULL)",
        "CREATE TABLE m1 (a INT NOT NULL, v VECTOR(3), p POINT NOT NULL SRID 4326, k INT, KEY f ((a + 1)),"
        " KEY h (k) INVISIBLE, c INT COLUMN_FORMAT DYNAMIC STORAGE DISK, x INT CHECK (x > 1)"
        " NOT ENFORCED, PRIMARY KEY (a))",
        "ALTER TABLE m1 ALTER COLUMN k SET INVISIBLE, ALTER INDEX h VISIBLE, ALTER CHECK m1_chk_1 ENFORCED",
        "ALTER TABLE m1 DROP CHECK m1_chk_1, ALTER COLUMN k SET VISIBLE",
        "ALTER TABLE m1 ADD l INT, ALGORITHM=INPLACE, LOCK=NONE",
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE m2 (a INT)",
        "ALTER TABLE m2 ALTER COLUMN my_row_id SET VISIBLE",
    ],
}


@pytest.mark.parametrize("source", ["mariadb", "mysql"], indirect=True)
async def test_statements_make_the_tables_that_the_server_has(
    source: Server, schema: str, execute: Execute, queries: Session
) -> None:
    statements = STATEMENTS + ONLY[source.kind]
    await execute_and_apply(source, schema, execute, queries, statements)


#: number of random statements
RANDOM_STATEMENTS = 400
TYPES = [
    "INT", "INT UNSIGNED", "BIGINT(7) ZEROFILL", "BOOL", "DECIMAL(9,3)", "FLOAT(9)", "DOUBLE UNSIGNED", "BIT(9)",
    "VARCHAR(20)", "VARCHAR(9) CHARACTER SET latin1", "CHAR(4) COLLATE latin2_bin", "NCHAR(3)", "CHAR(5) BYTE",
    "TEXT", "TINYTEXT CHARSET utf8mb3", "TEXT(300)", "BLOB(9)", "VARBINARY(70)", "JSON", "DATETIME(3)", "YEAR",
    "TIMESTAMP NULL", "TIME", "ENUM('a','b c','d,''e')", "SET('x','y') CHARACTER SET latin1", "POINT",
]  # fmt: skip
CHARSETS = ["latin1", "utf8mb4", "utf8mb3"]


@pytest.mark.parametrize("source", ["mariadb", "mysql"], indirect=True)
async def test_random_statements_make_the_tables_that_the_server_has(
    source: Server, schema: str, execute: Execute, queries: Session
) -> None:
    """The server refuses some of the statements; these are not in its binlog."""
    await execute_and_apply(source, schema, execute, queries, random_statements(random.Random(5)), strict=False)


def random_statements(rng: random.Random) -> Iterator[str]:
    tables = [f"t{n}" for n in range(4)]
    yield from (f"CREATE TABLE {name} (c0 INT PRIMARY KEY, c1 INT, c2 VARCHAR(9))" for name in tables)
    for _ in range(RANDOM_STATEMENTS):
        table, other = rng.sample([*tables, "t4"], 2)
        actions = ", ".join(alter_action(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
        yield rng.choice(
            [
                *[f"ALTER TABLE {table} {actions}"] * 12,
                f"CREATE TABLE {table} (c0 INT, c1 {rng.choice(TYPES)}) CHARSET {rng.choice(CHARSETS)}",
                f"CREATE TABLE {table} LIKE {other}",
                f"DROP TABLE {table}",
                f"RENAME TABLE {table} TO tmp, {other} TO {table}, tmp TO {other}",
                f"ALTER TABLE {table} RENAME TO {other}, {actions}",
                f"ALTER DATABASE CHARACTER SET {rng.choice(CHARSETS)}",
                f"CREATE INDEX i ON {table} ({column(rng)})",
            ]
        )


def column(rng: random.Random) -> str:
    return f"c{rng.randrange(7)}"


def alter_action(rng: random.Random) -> str:
    definition = f"{rng.choice(TYPES)}{rng.choice(['', ' NOT NULL', ' NULL'])}"
    position = rng.choice(["", "", " FIRST", f" AFTER {column(rng)}"])
    return rng.choice(
        [
            *[f"ADD {column(rng)} {definition}{position}"] * 4,
            f"ADD COLUMN ({column(rng)} {definition}, {column(rng)} {definition})",
            *[f"MODIFY {column(rng)} {definition}{position}"] * 3,
            *[f"CHANGE COLUMN {column(rng)} {column(rng)} {definition}{position}"] * 3,
            f"RENAME COLUMN {column(rng)} TO {column(rng)}",
            f"RENAME COLUMN {column(rng)} TO {column(rng)}, RENAME COLUMN {column(rng)} TO {column(rng)}",
            *[f"DROP COLUMN {column(rng)}"] * 2,
            "DROP PRIMARY KEY",
            f"ADD PRIMARY KEY ({column(rng)}, {column(rng)})",
            *[f"ADD UNIQUE ({column(rng)})"] * 2,
            f"ADD UNIQUE i ({column(rng)}, {column(rng)})",
            f"DROP INDEX {rng.choice(['i', 'C1'])}, ADD UNIQUE i ({column(rng)})",
            f"CONVERT TO CHARACTER SET {rng.choice(CHARSETS)}",
            f"DEFAULT CHARSET = {rng.choice(CHARSETS)}",
        ]
    )


async def execute_and_apply(
    source: Server, schema: str, execute: Execute, queries: Session, statements: Iterable[str], *, strict: bool = True
) -> None:
    """Run statements on the server; then apply the statements of its binlog, and compare all tables after each.

    Unless `strict`, the server may refuse statements, and we may refuse to apply two percent of those that it executes.
    After such a refusal we continue with the server's tables.
    """
    start = await queries.current_position()
    dialect = await dialect_of(queries)
    executed: list[tuple[str, tuple[str, int], Tables]] = []  # statement, end in the binlog, the tables after it
    for statement in statements:
        try:
            await execute(statement)
        except MySQLError:
            if strict:
                raise
            continue
        end = await queries.current_position()
        tables = {(t.schema, t.name): t for t in await read_tables(queries, schema)}
        executed.append((statement, (end.file, end.offset), tables))
    tables, charsets, refused = {}, {schema: "utf8mb4"}, []
    logged = await logged_queries(source, start)
    for statement, end, expected in executed:
        while logged and (logged[0].file, logged[0].end) <= end:
            event = logged.pop(0)
            if event.schema != schema:
                continue
            try:
                parsed = parse_statement(event.query.decode(), schema, sql_mode=event.sql_mode, flavor=dialect.flavor)
                changes = apply_ddl(parsed, tables, charsets, dialect)
            except CannotApply as error:
                refused.append((statement, error))
                tables = expected
            else:
                tables = {name: table for name, table in (tables | changes.tables).items() if table}
                charsets |= changes.charsets
        assert list(differences(tables, expected)) == [], statement
    assert len(refused) <= (0 if strict else len(executed) // 50), refused


async def logged_queries(source: Server, start: Position) -> list[Query]:
    async with session_on(source) as session:
        stream = await session.dump(
            start, server_id=random.randrange(10**6, 2**31), follow=False, wanted=lambda *_: False
        )
        return [
            event
            async for events in stream
            for event in events
            if isinstance(event, Query) and event.query not in {b"BEGIN", b"COMMIT"}
        ]


def differences(applied: Tables, expected: Tables) -> Iterator[tuple[object, ...]]:
    yield from (("missing or unexpected", name) for name in applied.keys() ^ expected.keys())
    for name in applied.keys() & expected.keys():
        ours, theirs = applied[name], expected[name]
        if [c.name for c in ours.columns] != [c.name for c in theirs.columns]:
            yield name, [c.name for c in ours.columns], [c.name for c in theirs.columns]
            continue
        for attribute in ("primary_key", "row_key", "charset"):
            if getattr(ours, attribute) != getattr(theirs, attribute):
                yield name, attribute, getattr(ours, attribute), getattr(theirs, attribute)
        for column, server_column in zip(ours.columns, theirs.columns, strict=True):
            if column != with_type_of(column, server_column):
                yield name, column, server_column


def with_type_of(column: Column, server_column: Column) -> Column:
    """Return the server's column with what servers do not show: the declared type.

    The COLUMN_TYPE of an ENUM or SET is replaced by ours, since servers escape labels differently in it.
    """
    raw_type = column.raw_type if column.values else server_column.raw_type
    return msgspec.structs.replace(server_column, raw_type=raw_type, declared=column.declared)
