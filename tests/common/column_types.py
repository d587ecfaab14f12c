"""The matrix: tables with a column of every type that a kind of server has, and the values that matter, as SQL.

Row n of a table has the n-th value of each column; a column with fewer values starts again with its first. The update
of a row sets about two thirds of the columns, to their next value if they have no `changes`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from devstack import Kind

#: the name of the primary key that MySQL, if asked, adds to a table without one
GENERATED_KEY = "my_row_id"


@dataclass(frozen=True)
class Column:
    """A column of the matrix."""

    #: its SQL definition, which follows the column's name
    type: str
    #: SQL expressions (none for a column that the server fills); NULL is one more value
    values: Sequence[str] = ()
    #: SQL expressions to which updates set the column, in turn, instead of its next value; `{}` is the column's name
    changes: Sequence[str] = ()

    @property
    def generated(self) -> bool:
        """Whether the server fills the column."""
        return not self.values

    @property
    def blob(self) -> bool:
        """Whether binlog_row_image=NOBLOB may leave the column out; VECTOR, geometries and MySQL's JSON are kept."""
        return "TEXT" in self.type or "BLOB" in self.type

    def value(self, row: int) -> str:
        """Return the value in a row; rows count from 0."""
        return [*self.values, "NULL"][row % (len(self.values) + 1)]

    def text(self, name: str) -> str:
        """Return an SQL expression with which the server prints the column of this name as the decoder does."""
        kind = self.type.partition("(")[0].partition(" ")[0]
        if kind in {"BIT", "ENUM", "SET"}:
            return f"CAST({name} AS UNSIGNED)"
        if kind in {"UUID", "INET6", "INET4"}:
            return f"CAST({name} AS BINARY({4 if kind == 'INET4' else 16}))"
        if self.type.startswith(("FLOAT(", "DOUBLE(")):
            return f"CAST({name} AS DOUBLE)"  # without the cast the server adds zeros up to the declared scale
        if "ZEROFILL" in self.type:
            return f"{name} + 0"
        if self.type == "YEAR(2)":
            return f"CONCAT(IF({name} < 70, '20', '19'), {name})"
        return name


@dataclass(frozen=True)
class Table:
    """A table of the matrix. Its primary key counts from 1, its other columns are named c0, c1, …."""

    name: str
    columns: Sequence[Column]
    #: name of the primary key
    key: str = "id"
    #: SQL of its other indexes
    indexes: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return max(len(column.values) for column in self.columns) + 1

    @property
    def settable(self) -> list[int]:
        """Return the numbers of the columns that statements can set."""
        return [number for number, column in enumerate(self.columns) if not column.generated]

    @property
    def creation(self) -> list[str]:
        """Return the statements that create the table."""
        parts = [f"c{number} {column.type}" for number, column in enumerate(self.columns)]
        parts += [self.indexes] if self.indexes else []
        if self.key == GENERATED_KEY:
            return ["SET sql_generate_invisible_primary_key = ON", f"CREATE TABLE {self.name} ({', '.join(parts)})"]
        return [f"CREATE TABLE {self.name} ({', '.join([f'{self.key} INT PRIMARY KEY', *parts])})"]

    @property
    def insert(self) -> str:
        """Return the statement that inserts all rows."""
        rows = [
            [str(row + 1), *(self.columns[number].value(row) for number in self.settable)] for row in range(self.rows)
        ]
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join([self.key, *(f"c{number}" for number in self.settable)])
        return f"INSERT INTO {self.name} ({names}) VALUES {values}"

    def updated(self, row: int) -> list[int]:
        """Return the numbers of the columns that the update of a row sets."""
        return [number for number in self.settable if (number + row) % 3] or self.settable

    def update(self, row: int) -> str:
        """Return the statement that updates a row."""
        new = [f"c{number} = {self._new_value(number, row)}" for number in self.updated(row)]
        return f"UPDATE {self.name} SET {', '.join(new)} WHERE {self.key} = {row + 1}"

    def _new_value(self, number: int, row: int) -> str:
        column = self.columns[number]
        if column.changes:
            return column.changes[row % len(column.changes)].format(f"c{number}")
        return column.value(row + 1)

    @property
    def select(self) -> str:
        """Return the statement that selects the text of all values, as the decoder returns them."""
        texts = [column.text(f"c{number}") for number, column in enumerate(self.columns)]
        return f"SELECT {', '.join([self.key, *texts])} FROM {self.name} ORDER BY {self.key}"


def repeated(sizes: Iterable[int], text: str = "'x'") -> list[str]:
    """Return a value for each size: the text, repeated this many times."""
    return [f"REPEAT({text}, {size})" for size in sizes]


def with_digits(kind: str, suffix: str, values: Sequence[str]) -> list[Column]:
    """Return a column for each number of fraction digits."""
    return [Column(f"{kind}({digits}){suffix}", values) for digits in range(7)]


def integers() -> list[Column]:
    sizes = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
    signed = [
        Column(kind, [str(-(2 ** (bits - 1))), str(2 ** (bits - 1) - 1), "0", "-1", "1"])
        for kind, bits in sizes.items()
    ]
    unsigned = [
        Column(f"{kind} UNSIGNED", [str(2**bits - 1), "0", str(2 ** (bits - 1))]) for kind, bits in sizes.items()
    ]
    return [*signed, *unsigned, Column("INT(8) UNSIGNED ZEROFILL", ["42"]), Column("BOOLEAN", ["TRUE", "FALSE"])]


def decimals() -> list[Column]:
    """Return columns of many precisions: the server stores groups of nine digits on both sides of the point."""
    shapes = [(digits + scale, scale) for digits, scale in product((0, 1, 9, 10), range(10)) if digits + scale]
    shapes += [(65, 0), (65, 30), (30, 30), (18, 9), (20, 5)]
    columns = []
    for precision, scale in shapes:
        most = "9" * (precision - scale) + "." + "9" * scale
        least = "0." + "1".zfill(scale) if scale else "1"
        columns.append(
            Column(f"DECIMAL({precision},{scale})", [f"'{n}'" for n in (most, f"-{most}", "0", least, f"-{least}")])
        )
    return [*columns, Column("DECIMAL(8,2) ZEROFILL", ["1.5"])]


NUMBERS = [
    *integers(),
    # FLOAT values have at most six digits, because the server prints no more
    Column("FLOAT", ["0.1", "-1.5", "3.25e10", "1e-30", "0", "3.40282e38", "-1.17549e-38"]),
    Column("FLOAT UNSIGNED", ["7.25"]),
    Column("FLOAT(7,3)", ["1.5", "-1234.125"]),
    Column("DOUBLE", ["0.1", "-1e20", "1e15", "123456789012345", "1e-5", "2.2250738585072014e-308", "0", "'-0'"]),
    Column("DOUBLE", ["1.7976931348623157e308", "5e-324", "123456789012345680000", "-1.2345678901234567e-100"]),
    Column("DOUBLE(10,2) ZEROFILL", ["1.25", "1.5"]),
    *(Column(f"BIT({bits})", [f"b'{'1' * bits}'", "0", f"b'1{'0' * (bits - 1)}'"]) for bits in (1, 7, 8, 9, 33, 64)),
    Column("YEAR", ["2155", "1901", "0", "2024"]),
]

TIMES = [
    Column("DATE", ["'9999-12-31'", "'0000-00-00'", "'2021-00-00'", "'2024-02-29'", "'0001-01-01'"]),
    *with_digits("TIME", "", [
        "'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-838:59:58.999999'", "'-00:00:00.1'", "'-01:00:00'",
        "'00:00:00.000001'", "'-00:00:00.000001'", "'12:34:56.789012'", "'-12:34:56.780000'",
    ]),
    *with_digits("DATETIME", "", [
        "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'", "'2021-00-00 00:00:00.5'", "'2021-02-03 04:05:06.789012'",
        "'1000-01-01 00:00:00.000001'", "'2021-12-00 23:00:00'",
    ]),
    *with_digits("TIMESTAMP", " NULL", [
        "'2038-01-19 03:14:07'", "'1970-01-01 00:00:01'", "'0000-00-00 00:00:00'", "'2024-12-31 23:59:58.999999'",
        "'2000-02-29 23:59:59.98'", "'1970-01-01 00:00:01.000001'",
    ]),
]  # fmt: skip

LABELS = [
    Column("ENUM('a','b','ß')", ["'ß'", "'a'", "'none of them'"]),
    Column("ENUM('é') CHARACTER SET latin1", ["'é'"]),
    *(Column(f"ENUM({','.join(f'{n!r}' for n in map(str, range(count)))})", ["1", str(count)]) for count in (255, 256)),
    *(
        Column(
            f"SET({','.join(repr(f'm{n}') for n in range(count))})",
            ["''", "'m0'", str(2**count - 1), str(2 ** (count - 1))],
        )
        for count in (1, 8, 9, 17, 25, 33, 64)
    ),
]

IN_CHARACTER_SETS = {
    "gbk": "你好abc", "big5": "許功蓋", "gb2312": "简体", "sjis": "表ソ能", "cp932": "①髙", "ujis": "表丂",
    "eucjpms": "①鄧", "euckr": "한국어", "cp1251": "Привет", "koi8r": "Привет", "greek": "Ξεσκ", "hebrew": "שלום",
    "latin2": "Zażółć", "tis620": "ภาษา", "swe7": "Åsa", "ucs2": "日本", "utf16": "日😀", "utf16le": "😀",
    "utf32": "日😀", "utf8mb4": "日😀", "ascii": "plain",
}  # fmt: skip

TEXTS = [
    Column("CHAR(0)", ["''"]),
    Column("CHAR(10) CHARACTER SET latin1", ["'é  '", "''", "_latin1 x'80818d'"]),
    Column("CHAR(63) CHARACTER SET utf8mb4", repeated([0, 1, 63], "'😀'")),
    Column("CHAR(64) CHARACTER SET utf8mb4", repeated([0, 1, 63, 64], "'😀'")),
    Column("CHAR(255) CHARACTER SET utf8mb4", repeated([1, 255], "'日'")),
    Column("VARCHAR(10) CHARACTER SET latin1", ["'é  '", "''"]),
    Column("VARCHAR(255) CHARACTER SET latin1", repeated([0, 254, 255], "'é'")),
    Column("VARCHAR(256) CHARACTER SET latin1", repeated([0, 255, 256], "'é'")),
    Column("VARCHAR(300) CHARACTER SET utf8mb3", ["'日本'"]),
    *(
        Column(f"VARCHAR(20) CHARACTER SET {charset}", [f"'{text}'", "''", "'abc'"])
        for charset, text in IN_CHARACTER_SETS.items()
    ),
    Column("CHAR(9) CHARACTER SET gbk", ["'客户'"]),
    Column("CHAR(9) CHARACTER SET utf16", ["'🦊'"]),
    Column("TINYTEXT CHARACTER SET ascii", repeated([0, 1, 255])),
    Column("TINYTEXT CHARACTER SET utf8mb4", repeated([0, 63], "'😀'")),
    Column("TEXT CHARACTER SET utf8mb4", ["'texté'", *repeated([255, 256, 32767], "'é'")]),
    Column("TEXT CHARACTER SET sjis", repeated([0, 255, 32767], "'表'")),
    Column("MEDIUMTEXT CHARACTER SET latin1", repeated([0, 65535, 65536], "'é'")),
    Column("LONGTEXT CHARACTER SET utf8mb4", repeated([0, 65535, 65536])),
]

BYTES = [
    Column("BINARY(0)", ["x''"]),
    Column("BINARY(1)", ["x''", "x'20'", "x'ff'"]),
    Column("BINARY(5)", ["x'0100'", "x''", "x'0102030405'", "x'0120'", "x'0000000001'"]),
    Column("BINARY(255)", repeated([0, 1, 255], "x'ff'")),
    Column("VARBINARY(255)", [*repeated([0, 255], "x'80'"), "x'00ff00'"]),
    Column("VARBINARY(256)", [*repeated([0, 255, 256], "x'80'"), "x'2000'"]),
    Column("TINYBLOB", repeated([0, 1, 255], "x'00'")),
    Column("BLOB", repeated([0, 1, 65535], "x'00'")),
    Column("MEDIUMBLOB", repeated([0, 1, 32768], "x'00ff'")),
    Column("LONGBLOB", repeated([0, 65535, 65536], "x'ff'")),
]

LONG_TEXT = [Column("VARCHAR(65000) CHARACTER SET latin1", repeated([0, 255, 256, 65000], "'é'"))]
LONG_BYTES = [Column("VARBINARY(65000)", repeated([0, 255, 256, 65000], "x'ff'"))]

GEOMETRIES = [
    Column("GEOMETRY", ["ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('LINESTRING(0 0,1 1)')"]),
    Column("POINT", ["ST_GeomFromText('POINT(-1.5 1e300)')"]),
    Column("LINESTRING", ["ST_GeomFromText('LINESTRING(0 0,1 1,2 3)')"]),
    Column("POLYGON", ["ST_GeomFromText('POLYGON((0 0,0 3,3 3,3 0,0 0),(1 1,1 2,2 2,2 1,1 1))')"]),
    Column("MULTIPOINT", ["ST_GeomFromText('MULTIPOINT(1 1,2 2)')"]),
    Column("MULTILINESTRING", ["ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))')"]),
    Column("MULTIPOLYGON", ["ST_GeomFromText('MULTIPOLYGON(((0 0,0 3,3 3,3 0,0 0)))')"]),
    Column("GEOMETRYCOLLECTION", ["ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')"]),
]

MARIADB = [
    Column("JSON COMMENT 'a LONGTEXT'", ["""'{"b":1, "a":[1,2.50]}'""", "'[]'", "'\"é\"'", "REPEAT('1', 70000)"]),
    Column("UUID", [
        "'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'123e4567-e89b-12d3-a456-426655442020'",
    ]),
    Column("INET4", ["'0.0.0.0'", "'1.0.0.0'", "'255.255.255.255'", "'192.168.0.32'"]),
    Column("INET6", ["'::'", "'ff00::'", "'::1'", "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'", "'::ffff:1.2.3.4'"]),
    Column("YEAR(2)", ["'05'", "'69'", "'70'", "'00'"]),
    Column("VARCHAR(1000) COMPRESSED", ["''", "'x'", *repeated([99, 1000], "'é'")]),
    Column("VARCHAR(1000) COMPRESSED CHARACTER SET gbk", ["'你好'", *repeated([1000], "'你'")]),
    Column("VARBINARY(100) COMPRESSED", ["x''", "x'00'", *repeated([100], "x'00'")]),
    Column("TINYTEXT COMPRESSED", repeated([0, 1, 200])),
    Column("TEXT COMPRESSED CHARACTER SET latin1", repeated([0, 255, 60000], "'é'")),
    Column("MEDIUMTEXT COMPRESSED", repeated([65536], "'é'")),
    Column("LONGTEXT COMPRESSED", repeated([0, 70000])),
    Column("TINYBLOB COMPRESSED", repeated([0, 200], "x'ff'")),
    Column("BLOB COMPRESSED", repeated([0, 60000], "x'80'")),
    Column("LONGBLOB COMPRESSED", repeated([70000], "x'00'")),
]  # fmt: skip

#: JSON columns with changes that the server may log as diffs, and an INT column
MYSQL_JSON = [
    Column(
        "JSON",
        [
            """'{"b": [1, 2.50, null, true, "q\\\\"é\\\\n"], "aa": {}}'""",
            "'[]'",
            "'{}'",
            "'1e20'",
            "'\"x\"'",
            "'null'",
            "'[[[[[]]]]]'",
            '\'{"": {"": 52.0}}\'',
            "JSON_OBJECT('d', CAST('2021-02-03' AS DATE), 't', CAST('-838:59:58.5' AS TIME(6)))",
            "JSON_ARRAY(CAST('2021-02-03 04:05:06.000007' AS DATETIME(6)), 1.50, CAST('-0.001' AS DECIMAL(10,3)))",
            "JSON_ARRAY(x'00ff', b'101', 18446744073709551615, -9223372036854775808, 65536, -32769, 32767, -1)",
            "JSON_ARRAY(1e0, 1e-7, 0.1e0, 1e300, 1.2345678901234567e-14, -0e0, TRUE, FALSE)",
            "JSON_ARRAY(REPEAT('x', 127), REPEAT('x', 128), REPEAT('x', 16384), 2147483647, 4294967295, 65535, -32768)",
            "JSON_OBJECT(REPEAT('k', 300), CAST('1970-01-01' AS DATETIME), 'é', CAST(-1.50 AS DECIMAL(65,30)))",
            "JSON_OBJECT('long', REPEAT('x', 70000), 'n', JSON_ARRAY(1, 70000))",
            "JSON_OBJECT('a', REPEAT('é', 200), 'b', REPEAT('x', 20000), 'c', CAST(2024 AS YEAR))",
            "JSON_QUOTE('a\\\\b\\t\\0')",
            "CAST(ST_GeomFromText('POINT(1 2)') AS JSON)",
            "CAST(REPEAT(x'00ff', 150) AS JSON)",
        ],
        changes=[
            "JSON_SET({}, '$.b', JSON_ARRAY(1, 2.50, 'é'))",
            "JSON_SET({}, '$[0]', 'first', '$[9]', CAST('12:00:00' AS TIME))",
            "JSON_REMOVE({}, '$.aa', '$.b[1]', '$.n')",
            "JSON_REPLACE({}, '$.d', 1e20, '$.t', JSON_OBJECT('new', NULL), '$[1]', 'x')",
            "JSON_ARRAY_APPEND({}, '$', 1)",
            "JSON_SET(JSON_REMOVE({}, '$[0]'), '$[last]', 5, '$.long', 'short')",
        ],
    ),
    Column("JSON", ["'[1, 2]'", "'{\"k\": 1}'"], changes=["JSON_SET({}, '$.k', 2)", "JSON_SET({}, '$[1]', 3.0)"]),
    Column("INT", ["1", "2", "3"]),
]

MYSQL = [
    Column("VECTOR(1)", ["STRING_TO_VECTOR('[0]')"]),
    Column("VARCHAR(9)", ["'é'"]),
    Column("VECTOR(3)", ["STRING_TO_VECTOR('[1,-2.5,3e38]')"]),
    Column("VARCHAR(9) CHARACTER SET latin1", ["'é'"]),
    Column("VARCHAR(20) CHARACTER SET gb18030", ["'简😀'"]),
]

#: columns with an index or an attribute, and generated ones
DERIVED = [
    Column("INT", ["1", "-7"]),
    Column("VARCHAR(300)", ["'é'", "''", "REPEAT('x', 300)"]),
    Column("INT UNSIGNED INVISIBLE", ["5", "4294967295"]),
    Column("BIGINT AS (c0 * 2) VIRTUAL"),
    Column("VARCHAR(400) CHARACTER SET latin1 AS (CONCAT(c1, 'ü')) STORED"),
    Column("TEXT AS (CONCAT(c1, c0)) VIRTUAL"),
    Column("BLOB AS (UNHEX(HEX(c1))) STORED"),
]


def tables(kind: Kind) -> list[Table]:
    """Return the tables of the matrix for a kind of server."""
    common = [
        Table("numbers", NUMBERS),
        Table("decimals", decimals()),
        Table("times", TIMES),
        Table("labels", LABELS),
        Table("texts", TEXTS),
        Table("bytes", BYTES),
        Table("long_text", LONG_TEXT),
        Table("long_bytes", LONG_BYTES),
        Table("geometries", GEOMETRIES),
    ]
    if kind == "mariadb":
        return [*common, Table("own", MARIADB), Table("derived", DERIVED, indexes="UNIQUE (c5), UNIQUE (c6, c0)")]
    multi_valued = Column("JSON", ["'[1, 2, 3]'", "'[]'"], changes=["JSON_SET({}, '$[0]', 9)"])
    functional = "UNIQUE ((c0 + 1), id), INDEX ((LOWER(c1))), INDEX ((CAST(c7 AS UNSIGNED ARRAY)))"
    return [
        *common,
        Table("own", MYSQL),
        Table("json", MYSQL_JSON),
        Table("derived", [*DERIVED, multi_valued], indexes=functional),
        Table("keyless", [Column("INT", ["1", "2"]), Column("TEXT", ["'x'"])], key=GENERATED_KEY),
    ]
