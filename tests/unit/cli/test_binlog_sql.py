"""`databus binlog --output pretty`, `sql` and `flashback` on files."""

import sys

import pytest

from databus_cli.binlog import reversed_file
from databus_cli.binlog.reversed_file import ReversedFile
from databus_cli.binlog.sql_rows import RowStatements
from databus_core.errors import PoisonError
from databus_core.events import Column, Index, Table
from unit.cli.conftest import GOLDEN

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SESSION = """\
SET NAMES utf8mb4;
SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
"""


def test_pretty_has_a_block_for_each_transaction_and_marks_what_changed(run_text):
    code, out, _ = run_text(str(GOLDEN), "--output", "pretty", "--gtids", f"{UUID}:15:17", "--quiet")
    assert code == 0
    assert (
        out
        == f"""
2023-11-14T22:13:34.250000Z  {UUID}:15  thread 7  mysql.bin:13671
  -- UPDATE shop.items SET name = NULL, price = 20.5, icon = x'00ff10' WHERE id = 1
  UPDATE shop.items
      id = 1
    ~ name = 'Anne' → NULL
    ~ price = 19.99 → 20.50
    ~ icon = NULL → x'00ff10'
      at = '2021-02-03 04:05:06'

2023-11-14T22:13:36.250000Z  {UUID}:17  thread 7  mysql.bin:14538
  ALTER TABLE shop.items ADD COLUMN stock INT NOT NULL DEFAULT 0 AFTER name
"""
    )


def test_pretty_is_coloured_only_on_a_terminal(run_text, monkeypatch):
    arguments = (str(GOLDEN), "--output", "pretty", "--gtids", f"{UUID}:14", "--quiet")
    assert "\x1b" not in run_text(*arguments)[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b[32m  INSERT shop.items\x1b[0m" in run_text(*arguments)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run_text(*arguments)[1]


def test_sql_does_the_changes_again_and_flashback_undoes_them_in_reverse_order(run_text):
    chosen = ("--gtids", f"{UUID}:14-16", "--quiet")
    titles = [
        f"-- 2023-11-14T22:13:3{second}.250000Z {UUID}:{number} thread 7 mysql.bin:{begin}\n"
        for second, number, begin in ((3, 14, 13310), (4, 15, 13757), (5, 16, 14227))
    ]
    rows = [
        ("INSERT INTO `shop`.`items` (`id`, `name`, `price`, `icon`, `at`) VALUES "
         "(1, 'Anne', 19.99, NULL, '2021-02-03 04:05:06');",
         "DELETE FROM `shop`.`items` WHERE `id` = 1;"),
        ("UPDATE `shop`.`items` SET `name` = NULL, `price` = 20.50, `icon` = x'00ff10', `at` = `at` WHERE `id` = 1;",
         "UPDATE `shop`.`items` SET `name` = 'Anne', `price` = 19.99, `icon` = NULL, `at` = `at` WHERE `id` = 1;"),
        ("DELETE FROM `shop`.`items` WHERE `id` = 1;",
         "INSERT INTO `shop`.`items` (`id`, `name`, `price`, `icon`, `at`) VALUES "
         "(1, NULL, 20.50, x'00ff10', '2021-02-03 04:05:06');"),
    ]  # fmt: skip
    blocks = [
        [f"{title}BEGIN;\n{row[way]}\nCOMMIT;\n" for way in (0, 1)] for title, row in zip(titles, rows, strict=True)
    ]
    assert run_text(str(GOLDEN), "--output", "sql", *chosen) == (0, SESSION + "".join(do for do, _ in blocks), [])
    undo = "".join(undo for _, undo in reversed(blocks))
    assert run_text(str(GOLDEN), "--output", "flashback", *chosen) == (0, SESSION + undo, [])


def test_sql_has_the_ddl_with_its_default_schema(run_text, binlog_file):
    file = binlog_file().gtid().query("CREATE TABLE t (id INT)").gtid().query("DROP TABLE IF EXISTS t, u").write()
    _, out, _ = run_text(file, "--output", "sql", "--quiet")
    assert [line for line in out.splitlines() if not line.startswith(("--", "SET"))] == [
        "USE `shop`;",
        "CREATE TABLE t (id INT);",
        "USE `shop`;",
        "DROP TABLE IF EXISTS t, u;",
    ]
    assert run_text(file, "--output", "sql", "--quiet", "--action", "delete")[1] == ""
    assert run_text(file, "--output", "sql", "--tables", "other.*", "--quiet")[1] == ""


def test_a_transaction_whose_end_was_not_read_is_rolled_back_or_left_out(run_text):
    arguments = (str(GOLDEN), "--gtids", f"{UUID}:14", "--to", "13640", "--quiet")  # before its XID
    _, out, _ = run_text(*arguments, "--output", "sql")
    assert out.endswith("-- the end of this transaction was not read\nROLLBACK;\n")
    assert run_text(*arguments, "--output", "flashback") == (
        0,
        "",
        ["databus: transactions whose end was not read: 1 left out"],
    )


@pytest.mark.parametrize(
    ("statement", "before", "reason"),
    [
        ("ALTER TABLE items ADD c INT", True, "ALTER shop.items changes the table after rows that are to be undone"),
        ("RENAME TABLE items TO goods", True, "ALTER shop.items changes the table after rows that are to be undone"),
        ("/* by a GUI */ TRUNCATE items", False, "TRUNCATE shop.items removes rows that are not in the binlog"),
        ("DROP TABLE IF EXISTS other, items", False, "DROP shop.other removes rows that are not in the binlog"),
        ("CREATE OR REPLACE TABLE items (id INT)", False, "CREATE shop.items removes rows that are not in the binlog"),
        ("DROP DATABASE shop", False, "DROP shop removes rows that are not in the binlog"),
    ],
)
def test_flashback_is_refused_if_ddl_makes_it_inexact(run_text, binlog_file, statement, before, reason):
    file = binlog_file()
    if before:
        file.transaction()
    path = file.gtid().query(statement).write()
    code, out, [*_, notice] = run_text(path, "--output", "flashback", "--quiet")
    assert (code, out) == (1, "")
    assert notice.startswith(f"databus: binlog.000007:{file.starts[-1]}: {reason}; use --from and --to, ")
    code, _, notices = run_text(path, "--output", "flashback", "--quiet", "--to", str(file.starts[-1]))
    assert (code, [each for each in notices if "removes" in each]) == (0, [])


def test_ddl_before_the_rows_does_not_matter(run_text, binlog_file):
    file = binlog_file().gtid().query("ALTER TABLE items ADD c INT").transaction().write()
    code, out, notices = run_text(file, "--output", "flashback", "--quiet")
    assert (code, out.count("DELETE FROM `shop`.`items`")) == (0, 1)
    assert notices[-1].startswith(
        "databus: known only from the binlog, which does not show what is generated: shop.items;"
    )


def test_sql_needs_names_and_takes_them_from_the_schema(run_text, binlog_file, tmp_path):
    file = binlog_file().gtid().query("BEGIN").labels_row(names=False).xid().write()
    code, _, [notice] = run_text(file, "--output", "flashback", "--quiet")
    assert code == 1
    assert "--schema FILE gives the table's definition" in notice
    columns = "e ENUM('s','m') NOT NULL, s SET('x','y','z') NOT NULL"
    (tmp_path / "schema.sql").write_text(f"USE shop; CREATE TABLE sizes ({columns}) CHARSET utf8mb4;")
    _, out, notices = run_text(file, "--output", "flashback", "--quiet", "--schema", str(tmp_path / "schema.sql"))
    assert notices == []
    assert "DELETE FROM `shop`.`sizes` WHERE `e` = 2 AND CAST(`s` AS UNSIGNED) = 5 LIMIT 1;" in out


def test_a_row_above_the_limit_stops_sql(run_text):
    limited = ("--row-limit", "500B", "--from", "5368", "--tables", "shop.types")
    code, _, notices = run_text(str(GOLDEN), "--output", "sql", "--quiet", *limited)
    assert code == 1
    assert notices == ["databus: a row of shop.types at mysql.bin:6624 is above --row-limit; raise it"]


def table(*columns: Column, key: tuple[int, ...] = ()) -> RowStatements:
    index = (Index("PRIMARY", tuple(columns[i].name for i in key), unique=True),) if key else ()
    return RowStatements(Table(schema="s", name="t`", columns=columns, primary_key=key, indexes=index))


def test_generated_columns_are_left_to_the_server():
    rows = table(
        Column(name="a", type="int", raw_type="int"),
        Column(name="b", type="int", raw_type="int", generated=True),
        Column(name="f", type="float", raw_type="float"),
    )
    assert rows.insert([b"1", b"2", b"0.1"]) == "INSERT INTO `s`.`t``` (`a`, `f`) VALUES (1, 0.1e0);"
    where = "`a` = 1 AND `f` = 0.10000000149011612e0 LIMIT 1"
    assert rows.delete([b"1", b"2", b"0.1"]) == f"DELETE FROM `s`.`t``` WHERE {where};"
    assert rows.update([b"1", b"2", b"0.1"], [b"1", b"4", b"0.1"]) is None
    assert rows.update([b"1", b"2", b"0.1"], [None, None, b"0.1"]) == f"UPDATE `s`.`t``` SET `a` = NULL WHERE {where};"


def test_values_that_the_row_image_lacks_stop_only_what_needs_them():
    rows = table(
        Column(name="id", type="int", raw_type="int"), Column(name="t", type="text", raw_type="text"), key=(0,)
    )
    assert rows.delete([b"1", False]) == "DELETE FROM `s`.`t``` WHERE `id` = 1;"
    assert rows.update([b"1", False], [b"2", False]) == "UPDATE `s`.`t``` SET `id` = 2 WHERE `id` = 1;"
    with pytest.raises(PoisonError, match=r"the row image of s\.t` lacks column t \(binlog_row_image\)"):
        rows.insert([b"1", False])


@pytest.mark.parametrize("memory", [1 << 20, 1])
def test_records_are_read_in_reverse_order_from_memory_or_disk(monkeypatch, memory):
    monkeypatch.setattr(reversed_file, "_IN_MEMORY", memory)
    file = ReversedFile()
    file.append(b"one")
    size = file.size
    file.append(b"two")
    file.truncate(size)
    file.append(b"")
    file.append(b"three")
    assert list(file) == [b"three", b"", b"one"]
    file.close()
