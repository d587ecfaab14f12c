"""Random statements of the lake's storm, for the tables as they are at the moment."""

from collections.abc import Callable, Sequence
from random import Random

from devstack import Kind
from faults.lake_columns import ADDED, IMPLICIT, KEYS, Column, draw, wider

#: names of columns that come and go
_NAMES = ("c0", "c1", "c2", "c3", "odd `name", "Größe", "drop", "C_5")
_MOST_COLUMNS = 11
Columns = Sequence[Column]


def identifier(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"


# --- rows -------------------------------------------------------------------------------------------------------------


def row_statements(random: Random, table: str, columns: Columns) -> list[str]:
    """Draw statements that change rows of a table."""
    return random.choices(_ROWS, _ROW_WEIGHTS)[0](random, identifier(table), columns)


def _insert(random: Random, table: str, columns: Columns, verb: str = "INSERT", rows: int = 8) -> list[str]:
    names = ", ".join(identifier(column.name) for column in columns)
    values = [f"({', '.join(draw(random, column) for column in columns)})" for _ in range(random.randint(1, rows))]
    return [f"{verb} INTO {table} ({names}) VALUES {', '.join(values)}"]


def _insert_ignore(random: Random, table: str, columns: Columns) -> list[str]:
    return _insert(random, table, columns, "INSERT IGNORE")


def _replace(random: Random, table: str, columns: Columns) -> list[str]:
    return _insert(random, table, columns, "REPLACE")


def _insert_or_update(random: Random, table: str, columns: Columns) -> list[str]:
    (insert,) = _insert(random, table, columns)
    changed = random.sample(columns, random.randint(1, len(columns)))
    assignments = []
    for column in changed:
        name = identifier(column.name)
        if not column.in_key:
            assignments.append(f"{name} = VALUES({name})")
        elif random.random() < 0.5:
            assignments.append(f"{name} = {_moved(random, column)}")
    return [f"{insert} ON DUPLICATE KEY UPDATE {', '.join(assignments)}"] if assignments else [insert]


def _update(random: Random, table: str, columns: Columns) -> list[str]:
    others = [column for column in columns if not column.in_key]
    if not others:
        return _insert(random, table, columns)
    changed = random.sample(others, random.randint(1, min(3, len(others))))
    assignments = ", ".join(f"{identifier(column.name)} = {draw(random, column)}" for column in changed)
    return [f"UPDATE {table} SET {assignments} WHERE {_some(random, columns)} LIMIT {random.randint(1, 9)}"]


def _move(random: Random, table: str, columns: Columns) -> list[str]:
    """Change keys, so that rows take the places of others."""
    column = random.choice([column for column in columns if column.in_key])
    name, order = identifier(column.name), random.choice(["ASC", "DESC"])
    verb = random.choice(["UPDATE", "UPDATE", "UPDATE IGNORE"])
    return [
        f"{verb} {table} SET {name} = {_moved(random, column)} WHERE {_some(random, columns)} "
        f"ORDER BY {name} {order} LIMIT {random.randint(1, 9)}"
    ]


def _to_and_fro(random: Random, table: str, columns: Columns) -> list[str]:
    column = random.choice([column for column in columns if column.in_key])
    name, one, other = identifier(column.name), draw(random, column), draw(random, column)
    there = f"UPDATE IGNORE {table} SET {name} = {other} WHERE {name} = {one} LIMIT 1"
    back = f"UPDATE IGNORE {table} SET {name} = {one} WHERE {name} = {other} LIMIT 1"
    return [there, back] * random.randint(1, 2)


def _delete(random: Random, table: str, columns: Columns) -> list[str]:
    return [f"DELETE FROM {table} WHERE {_some(random, columns)} LIMIT {random.randint(1, 6)}"]


def _some(random: Random, columns: Columns) -> str:
    column = random.choice([column for column in columns if column.in_key])
    return f"{identifier(column.name)} {random.choice(['=', '>=', '<=', '<>'])} {draw(random, column)}"


def _moved(random: Random, column: Column) -> str:
    """Build an expression for a new value of a key's column, from the old one."""
    name = identifier(column.name)
    if column.kind == "datetime":
        return f"{name} + INTERVAL 1 SECOND"
    if column.kind in ("varchar", "char"):
        return random.choice([f"UPPER({name})", f"LOWER({name})", f"LEFT(CONCAT({name}, 'a'), 6)", f"LEFT({name}, 1)"])
    if column.kind in ("varbinary", "binary"):
        return f"LEFT(CONCAT({name}, 'a'), 4)"
    return random.choice([f"{name} + 1", f"{name} - 1", f"{name} + 7", f"{_middle(column)} - {name}"])


def _middle(column: Column) -> str:
    return "40" if column.kind != "decimal" else "40.00"


_ROWS: list[Callable[[Random, str, Columns], list[str]]] = [
    _insert,
    _insert_ignore,
    _replace,
    _insert_or_update,
    _update,
    _move,
    _to_and_fro,
    _delete,
]
_ROW_WEIGHTS = [3, 3, 4, 5, 6, 5, 2, 3]


# --- tables -----------------------------------------------------------------------------------------------------------


def create_table(random: Random, table: str, verb: str = "CREATE TABLE") -> str:
    """Draw a CREATE TABLE."""
    keys, key = random.choice(KEYS)
    names = random.sample(_NAMES, random.randint(1, 4))
    columns = [keys, *(_definition(random, name) for name in names), f"PRIMARY KEY ({key})"]
    if random.random() < 0.3:
        columns += ["n int NULL", "UNIQUE KEY (n)"]
    return f"{verb} {identifier(table)} ({', '.join(columns)})"


def _definition(random: Random, name: str) -> str:
    """Draw the definition of a column whose values in existing rows its text tells."""
    kind = random.choice(list(ADDED))
    options = [f"{kind} NULL", kind]
    options += [f"{kind} {null} DEFAULT {value}" for value in ADDED[kind] for null in ("", "NOT NULL")]
    options += [f"{kind} NOT NULL"] * (2 * (kind in IMPLICIT))
    return f"{identifier(name)} {random.choice(options)}"


def alter_table(random: Random, table: str, columns: Columns) -> list[str]:
    """Draw one or two ALTER TABLE statements."""
    free = [name for name in _NAMES if name.lower() not in {column.name.lower() for column in columns}]
    others = [column for column in columns if not column.in_key and column.name in _NAMES]
    random.shuffle(free)
    random.shuffle(others)
    parts: list[str] = []
    added: list[str] = []  # their places are drawn when it is known which columns nothing else touches
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        match random.randrange(8):
            case 0 | 1 if free and len(columns) < _MOST_COLUMNS:
                added.append(f"ADD COLUMN {_definition(random, free.pop())}")
            case 2 if others and len(others) > 1:
                parts.append(f"DROP COLUMN {identifier(others.pop().name)}")
            case 3 if others:
                name = others.pop().name
                drop, add = f"DROP COLUMN {identifier(name)}", f"ADD COLUMN {_definition(random, name)}"
                if random.random() < 0.3:
                    return [f"ALTER TABLE {identifier(table)} {drop}", f"ALTER TABLE {identifier(table)} {add}"]
                parts += [drop, add]
            case 4 if others and free:
                parts.append(f"RENAME COLUMN {identifier(others.pop().name)} TO {identifier(free.pop())}")
            case 5 if len(others) > 1:
                one, other = identifier(others.pop().name), identifier(others.pop().name)
                parts += [f"RENAME COLUMN {one} TO {other}", f"RENAME COLUMN {other} TO {one}"]
            case _ if others:
                parts.append(_modify(random, others.pop(), free))
            case _:
                pass
    parts += [text + _place(random, columns, others) for text in added]
    key = [column for column in columns if column.in_key]
    if not parts and random.random() < 0.5:
        parts = [_modify(random, random.choice(key), [])]
    return [f"ALTER TABLE {identifier(table)} {', '.join(parts or ['ADD KEY (' + identifier(key[0].name) + ')'])}"]


def _place(random: Random, columns: Columns, kept: Columns) -> str:
    """Draw where a column is added: after one that no other part of the statement touches."""
    key = [column for column in columns if column.in_key]
    return random.choice(["", "", " FIRST", f" AFTER {identifier(random.choice([*kept, *key]).name)}"]) if kept else ""


def _modify(random: Random, column: Column, free: list[str]) -> str:
    kind = wider(random, column) or column.type
    null = "NOT NULL" if column.in_key or (not column.nullable and random.random() < 0.7) else "NULL"
    if free and random.random() < 0.4:
        return f"CHANGE COLUMN {identifier(column.name)} {identifier(free.pop())} {kind} {null}"
    return f"MODIFY COLUMN {identifier(column.name)} {kind} {null}"


def change_tables(random: Random, tables: Sequence[str], free: Sequence[str], server: Kind) -> list[str]:
    """Draw statements that create, empty, drop and rename tables."""
    table, other = random.sample(tables, 2)
    a, b, spare = identifier(table), identifier(other), random.choice(free)
    x = identifier(spare)
    again = create_table(random, table, "CREATE OR REPLACE TABLE")
    if server != "mariadb":
        again = f"TRUNCATE {a}"
    return random.choice(
        [
            [f"RENAME TABLE {a} TO {x}"],
            [f"RENAME TABLE {a} TO {x}, {b} TO {a}, {x} TO {b}"],
            [f"RENAME TABLE {a} TO {x}, {b} TO {a}"],
            [f"RENAME TABLE {a} TO {x}", f"RENAME TABLE {x} TO {a}"],
            [f"ALTER TABLE {a} RENAME TO {x}"],
            [f"DROP TABLE {a}", create_table(random, table)],
            [f"DROP TABLE {a}", f"CREATE TABLE {a} LIKE {b}"],
            [f"CREATE TABLE {x} LIKE {a}", f"INSERT INTO {x} SELECT * FROM {a}", f"RENAME TABLE {b} TO {b[:-1]}_old`",
             f"RENAME TABLE {x} TO {b}", f"DROP TABLE {b[:-1]}_old`"],
            [f"TRUNCATE TABLE {a}"],
            [again],
            [create_table(random, table, "CREATE TABLE IF NOT EXISTS")],
            [create_table(random, spare, "CREATE TABLE IF NOT EXISTS")],
        ]
    )  # fmt: skip
