"""`databus binlog`: which transactions, statements and rows are printed."""

from datetime import UTC, datetime

import pytest

from databus_cli.__main__ import main
from databus_cli.binlog.where import Where
from databus_core.events import Column, Table
from unit.cli.conftest import GOLDEN

MARIADB = GOLDEN.with_name("mariadb.bin")
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SALE = f"{UUID}:18"


def at(second: int) -> str:
    """Return a time: the golden files have a statement each second."""
    return datetime.fromtimestamp(1_700_000_000 + second, UTC).isoformat()


@pytest.fixture
def chosen(run, golden):
    """Return what is printed of the golden file of MySQL: number of the transaction, type and table."""

    def choose(*arguments: str, file: object = golden) -> list[tuple[int, str, str]]:
        code, lines, notices = run(str(file), "--quiet", *arguments)
        assert (code, notices) == (0, [])
        return [
            (int(line["gtid"].split(":")[-1].split("-")[-1]), line["type"], line.get("table", "")) for line in lines
        ]

    return choose


ITEMS = [(14, "insert", "items"), (15, "update", "items"), (16, "delete", "items")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--since", at(13), "--until", at(16)],
        ["--since", "2023-11-14T23:13:33+01:00", "--until", at(16)],
        ["--from", "13300", "--to", "14530"],
        ["--from", "mysql.bin:13300", "--to", "mysql.bin:14530"],
        ["--from", f"{UUID}:14", "--to", f"{UUID.upper()}:16"],
        ["--from", f"{UUID}:14", "--to", "14538"],
        ["--gtids", f"{UUID}:14-16"],
        ["--gtids", f"{UUID}:1-40", "--exclude-gtids", f"{UUID}:1-13:17-99"],
        ["--gtids", f"{UUID}:14-16", "--thread", "7"],
    ],
)
def test_a_range_of_transactions_is_chosen_by_time_position_gtid_and_thread(chosen, arguments):
    if "13300" in arguments[1]:  # an offset must be that of an event
        arguments = [each.replace("13300", "13224").replace("14530", "14538") for each in arguments]
    assert chosen(*arguments) == ITEMS


def test_transactions_are_chosen_as_a_whole_by_their_commit_time(chosen):
    sale = chosen("--gtids", SALE)
    assert len(sale) == 10
    # Its rows are logged with the seconds 18 to 24, and it is committed as a whole.
    ranges = [chosen("--since", at(second), "--until", at(second + 1)) for second in range(17, 26)]
    assert [found for found in ranges if found] == [sale]


def test_gtids_of_mariadb_are_listed_one_by_one(chosen):
    by_gtid = chosen("--gtids", "5-1-9,5-1-10", file=MARIADB)
    assert by_gtid == [(9, "update", "types"), (10, "delete", "types")]
    assert chosen("--from", "5-1-9", "--to", "5-1-10", file=MARIADB) == by_gtid


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--action", "delete"], [(10, "delete", "types"), (16, "delete", "items"), (18, "delete", "items")]),
        (["--action", "ddl", "--to", "12500"], [(1, "query", ""), (2, "query", ""), (11, "query", "")]),
        (["--action", "delete", "--action", "insert", "--tables", "shop.i*", "--to", "15000"], [ITEMS[0], ITEMS[2]]),
        (["--where", "id = 4", "--tables", "shop.types"], [(6, "insert", "types"), (10, "delete", "types")]),
        (["--where", "ID = 4 AND i8 IS NOT NULL", "--action", "delete", "--to", "13000"], [(10, "delete", "types")]),
        (["--where", "name IS NULL", "--tables", "shop.items", "--to", "15000"], ITEMS[1:]),
    ],
)  # fmt: skip
def test_rows_are_chosen_by_action_and_values(chosen, arguments, expected):
    assert chosen(*arguments) == expected


def test_ddl_is_recognised_behind_comments(run, binlog_file):
    ddl = ["/* by a GUI */ create table t (id INT)", "-- note\n DROP TABLE t", "/*!50001 ALTER TABLE t ADD c INT */"]
    file = binlog_file()
    for text in [*ddl, "GRANT CREATE ON *.* TO me", "CREATED"]:
        file.gtid().query(text)
    _, lines, _ = run(file.write(), "--quiet", "--action", "ddl")
    assert [line["query"] for line in lines] == ddl


def test_an_update_is_chosen_by_its_row_before_or_after(run):
    changed = {"--where": "stock = 3"}
    _, lines, _ = run(str(GOLDEN), "--quiet", "--action", "update", "--tables", "shop.items", "--gtids", SALE)
    values = [(line["before"]["stock"], line["after"]["stock"]) for line in lines]
    before, after = values[0]
    for value in (before, after):
        changed = ("--where", f"stock = {value}", "--action", "update", "--gtids", SALE)
        _, found, _ = run(str(GOLDEN), "--quiet", *changed)
        assert lines[0] in found


def test_names_that_the_binlog_lacks_are_numbers_in_conditions(run, binlog_file):
    file = binlog_file().gtid().query("BEGIN").labels_row(names=False).labels_row(names=True).xid().write()
    _, [line], _ = run(file, "--quiet", "--where", "@1 = 2")
    assert line["row"] == {"@1": "2", "@2": "5"}


def test_a_condition_that_fits_no_table_is_reported(run):
    _, lines, notices = run(str(GOLDEN), "--quiet", "--where", "idd = 1")
    assert lines == []
    assert notices == ["databus: --where fits no table that was read: shop.types: there is no column idd"]
    _, _, [notice] = run(str(GOLDEN), "--quiet", "--tables", "shop.items", "--where", "icon = 'x'")
    assert notice.endswith("shop.items: column icon has bytes; only IS NULL is possible")


def test_what_the_binlog_does_not_have_is_reported(run):
    _, _, notices = run(str(GOLDEN), "--quiet", "--from", f"{UUID}:99", "--to", f"{UUID}:98")
    assert notices == [
        f"databus: --from: no transaction {UUID}:99 was read",
        f"databus: --to: no transaction {UUID}:98 was read",
    ]
    _, lines, [notice] = run(str(MARIADB), "--quiet", "--thread", "8", "--action", "insert")
    assert lines == []
    assert "do not name their connection" not in notice
    assert "transactions were left out because the binlog does not name their connection" in notice


def test_reading_ends_with_the_file_of_the_last_position(run, tmp_path):
    for name in ("log.1", "log.2"):
        (tmp_path / name).write_bytes(MARIADB.read_bytes())
    files = (str(tmp_path / "log.1"), str(tmp_path / "log.2"), "--quiet")
    _, lines, notices = run(*files, "--to", "log.1:999999")
    assert {line["file"] for line in lines} == {"log.1"}
    assert not [notice for notice in notices if "--to" in notice]
    _, lines, _ = run(*files, "--to", "999999")
    assert {line["file"] for line in lines} == {"log.1", "log.2"}
    _, _, notices = run(*files, "--from", "log.2:4", "--to", "log.1:4")
    assert notices == ["databus: --to: file log.1 was not read"]


def test_reading_ends_before_files_that_are_much_newer_than_until(run):
    _, _, notices = run(str(GOLDEN), "--quiet", "--until", "2023-11-14T20:00:00Z")
    [notice] = notices
    assert notice.startswith("databus: --until: reading ended before mysql.bin, which was created more than an hour")


def test_a_format_of_the_publisher_takes_transactions(run):
    arguments = ("--quiet", "--format", "maxwell-json", "--gtids", SALE)
    _, lines, _ = run(str(GOLDEN), *arguments)
    assert len({line["value"]["xid"] for line in lines}) == 1
    code, _, [notice] = run(str(GOLDEN), *arguments, "--where", "id = 1")
    assert code == 2
    assert notice.startswith("databus: --where and --action are for --output")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--since", "2026-11-20T10:30:00"], "has no time zone; append Z for UTC, or an offset such as +01:00"),
        (["--until", "10:30"], "'10:30' is not a time; write it as 2026-11-20T10:00:00Z"),
        (["--from", "bin.1:3"], "'bin.1:3' is not the offset of an event; the first one is at 4"),
        (["--to", "bin.1"], "'bin.1' is neither OFFSET, nor FILE:OFFSET, nor a GTID"),
        (["--gtids", "1-2"], "'1-2' is neither GTIDs of MariaDB (0-1-9,0-1-10) nor a GTID set of MySQL"),
        (["--gtids", ""], "'' is neither GTIDs of MariaDB"),
        (["--thread", "x"], "'x' is not the id of a connection"),
        (["--action", "truncate"], "invalid choice: 'truncate'"),
        (["--where", "id = 1 OR id = 2"], "write COLUMN = VALUE, !=, [NOT] IN (VALUE, …) or IS [NOT] NULL, joined"),
        (["--where", "id = NULL"], "'id = NULL' is not a condition"),
        (["--where", "sleep(1)"], "'sleep(1)' is not a condition"),
        (["--output", "sql", "--format", "json"], "not allowed with argument --output"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_refused_with_what_to_write(capsys, arguments, error):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["binlog", "bin.1", *arguments])
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "name binlog files, or with --server or --config a server that is read"),
        (["x", "--follow"], "--follow needs a server that is read: --server, or --config"),
        (["x", "--user", "me"], "--user and --password-file are for --server and --schema-server"),
        (["x", "--from", "y:4"], "y is none of the files: x"),
        (["--server", "h"], "say where to start on the server: FILE, --from, --since, or with --follow at its end"),
        (["--server", "h", "--from", "4"], "--from: name the file, as FILE:OFFSET"),
        (["--server", "h", "--since", at(1), "--to", "4"], "--to: name the file, as FILE:OFFSET"),
        (["--server", "h", "--follow", "--output", "flashback"], "--follow has no end: "),
        (["--server", "h", "x", "--schema-server", "i"], "--server has the definitions of the tables"),
        (["--server", "h:70000", "x"], "h:70000: "),
        (["--server", "h", "x", "--password-file", "/nowhere"], "h: password_file cannot be read: "),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, arguments, error):
    code, _, [notice] = run(*arguments)
    assert code == 2
    assert notice.startswith(f"databus: {error}")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("n = 1", "a"), ("`n` != 1", "b"), ("n <> '1'", "b"), ("n IN (1, -2)", "ab"), ("n not in (1)", "b"),
        ("n IS NULL", "c"), ("n is not null AND s = 'it''s'", "b"), ('s = "x"', "a"), ("e = 'small'", "a"),
        ("d = 1.50", "a"), ("d = 1.5", "a"), ("s IS NULL", ""),
    ],
)  # fmt: skip
def test_conditions_compare_values_as_sql_does(text, rows):
    columns = [("n", "int"), ("s", "varchar(9)"), ("e", "enum('small')"), ("d", "decimal(5,2)")]
    table = Table(
        schema="shop",
        name="t",
        columns=tuple(
            Column(name=name, type=kind.partition("(")[0], raw_type=kind, values=("small",) * (name == "e"))
            for name, kind in columns
        ),
    )
    images = {"a": [b"1", b"x", b"1", b"1.50"], "b": [b"-2", b"it's", None, None], "c": [None, False, None, None]}
    where = Where(text)
    assert "".join(name for name, image in images.items() if where.meets(table, image)) == rows
