"""`databus binlog --format` stops where the reader stops, or with `--lenient` leaves out what is in doubt."""

import asyncio
from pathlib import Path

import pytest

from databus_binlog import Decoder, Gtid, read_file
from databus_changes.ddl.dialect import Dialect
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_cli.binlog import transactions
from databus_cli.binlog.files import read_files
from databus_core.errors import DatabusError
from databus_core.events import QueryEvent, RowsEvent
from databus_core.kafka_history import SchemaHistory
from databus_core.progress import Progress
from databus_core.settings import Source

M1 = Path(__file__).parents[2] / "fixtures" / "mysql-binlog" / "m1.bin"
LENIENT = "; --lenient leaves the doubtful changes out and continues"


def translate_as_the_reader(path: str) -> tuple[list[int], str]:
    """Translate a file as the reader does; return the start offsets of the changes, and the error's text, if any."""

    async def look_up(_schema, _name):
        return None

    dialect = Dialect(flavor="mysql", integer_widths=False)
    tracker = TableTracker(SchemaHistory(), dialect, lookup=look_up, tracks=Source().captures_some)
    translator = Translator(Source(), "mysql", tracker, Progress())
    decoder = Decoder(file=Path(path).name, wanted=Source().captures, describe=tracker.describe, by_statement=True)
    changes = []
    try:
        with Path(path).open("rb") as file:
            for events in read_file(file.read, decoder):
                for event in events:
                    changes += asyncio.run(translator.translate([event], events.tables))
    except DatabusError as error:
        return starts(changes), str(error)
    return starts(changes), ""


def starts(changes):
    return [change.start for change in changes if isinstance(change, RowsEvent | QueryEvent)]


def log_of(binlog_file, case):
    """Write a file with a statement, a transaction, the events of the case, and another transaction."""
    file = binlog_file().query("CREATE DATABASE shop").transaction()
    case(file)
    return file.transaction().write()


def alter_of_a_temporary_table(file):
    file.query("CREATE TEMPORARY TABLE t (id INT)").query("ALTER TABLE t ADD c INT")


def statement(text):
    return lambda file: file.query("BEGIN").query(text).xid()


STOPS = {
    "insert": (statement("INSERT INTO t VALUES (1)"), "may have changed tables of shop without logging the rows"),
    "create-select": (statement("CREATE TABLE t AS SELECT 1"), "may have changed shop.t without logging the rows"),
    "unreadable": (statement(r"CREATE TABLE t (c CHAR(9) DEFAULT 'C:\')"), "cannot be read as SQL"),
    "no-end": (lambda file: file.query("BEGIN").row(), "has no end"),
    "outside": (lambda file: file.row(), "rows of shop.items outside a transaction"),
    "rollback": (lambda file: file.query("BEGIN").row().query("ROLLBACK"), "ROLLBACK after captured rows"),
    "to-savepoint": (lambda file: file.query("BEGIN").row().query("ROLLBACK TO s").xid(), "ROLLBACK after"),
}


def test_an_alter_of_a_temporary_table_is_ignored_by_the_reader_and_the_command(run, binlog_file):
    path = log_of(binlog_file, alter_of_a_temporary_table)
    changes, error = translate_as_the_reader(path)
    code, lines, notices = run(path, "--format", "databus", "--quiet")
    assert (len(changes), error) == (2, "")
    assert (code, len(lines), notices) == (0, 2, [])


@pytest.mark.parametrize("name", STOPS)
def test_the_command_stops_where_the_reader_stops_but_does_not_advise_on_a_pipeline(run, binlog_file, name):
    case, words = STOPS[name]
    path = log_of(binlog_file, case)
    changes, error = translate_as_the_reader(path)
    assert words in error
    code, lines, notices = run(path, "--format", "databus", "--quiet")
    text = notices[-1].removeprefix("databus: ").removesuffix(LENIENT)
    assert (code, text) == (1, error[: len(text)])
    assert error[len(text) :].startswith("; ")
    assert "pipeline" not in text
    assert len(lines) == len(changes)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("insert", "statements that may have changed rows: 1 left out"),
        ("create-select", "CREATE TABLE statements that fill the table from a query: 1 left out"),
        ("unreadable", "statements that cannot be read as SQL: 1 left out"),
        ("no-end", "transactions without an end: 1 left out"),
        ("outside", "rows outside a transaction: 1 left out"),
        ("rollback", "transactions with a ROLLBACK after rows: 1 left out"),
        ("to-savepoint", "transactions with a ROLLBACK after rows: 1 left out"),
    ],
)
@pytest.mark.parametrize("output", ["databus", "maxwell-json"])
@pytest.mark.parametrize("memory", [1 << 26, 10])
def test_lenient_leaves_out_what_is_in_doubt_and_reports_it(
    run, binlog_file, monkeypatch, name, left_out, output, memory
):
    monkeypatch.setattr(transactions, "_IN_MEMORY", memory)
    path = log_of(binlog_file, STOPS[name][0])
    code, lines, notices = run(path, "--format", output, "--quiet", "--lenient")
    assert (code, len(lines)) == (0, 2)
    [notice] = notices
    assert notice.startswith(f"databus: {left_out}, the first at binlog.000007:")


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("no-end", "transactions without an end"),
        ("rollback", "transactions with a ROLLBACK after rows"),
        ("to-savepoint", "transactions with a ROLLBACK after rows"),
    ],
)
def test_a_doubtful_transaction_is_reported_once_if_no_other_changes_follow(run, binlog_file, name, left_out):
    file = binlog_file()
    STOPS[name][0](file)
    path = file.gtid().query("BEGIN").xid().write()
    code, lines, notices = run(path, "--format", "databus", "--quiet", "--lenient")
    assert (code, lines) == (0, [])
    [notice] = notices
    assert notice.startswith(f"databus: {left_out}: 1 left out,")


def test_lenient_prints_a_statement_that_removes_rows_and_reports_that_the_rows_are_missing(run, binlog_file):
    file = binlog_file().query("CREATE TABLE t (id INT)").query("ALTER TABLE t DROP PARTITION p").transaction()
    path = file.write()
    code, lines, notices = run(path, "--format", "databus", "--quiet")
    assert (code, len(lines)) == (1, 1)
    assert "may have removed or replaced rows of shop.t" in notices[-1]
    code, lines, notices = run(path, "--format", "databus", "--quiet", "--lenient")
    assert (code, len(lines)) == (0, 3)
    first = f"binlog.000007:{file.starts[1]}"
    assert notices == [f"databus: changes of rows by ALTER TABLE statements: 1 left out, the first at {first}"]


def test_lenient_reports_the_count_and_the_first_position(run, binlog_file):
    file = binlog_file()
    for _ in range(3):
        file.query("BEGIN").query("DELETE FROM t").xid()
    path = file.write()
    _, _, notices = run(path, "--format", "databus", "--quiet", "--lenient")
    first = f"binlog.000007:{file.starts[1]}"
    assert notices == [f"databus: statements that may have changed rows: 3 left out, the first at {first}"]
    _, _, notices = run(path, path, "--format", "databus", "--quiet", "--lenient")
    assert notices == [f"databus: statements that may have changed rows: 6 left out, the first at {first}"]


def test_lenient_reports_what_it_left_out_even_if_the_command_fails(run, binlog_file, tmp_path):
    path = Path(log_of(binlog_file, STOPS["insert"][0]))
    (tmp_path / "cut.bin").write_bytes(path.read_bytes()[:-7])
    code, lines, notices = run(str(tmp_path / "cut.bin"), "--format", "databus", "--quiet", "--lenient")
    assert (code, len(lines)) == (1, 1)
    assert [notice.split(",")[0] for notice in notices[:-1]] == [
        "databus: statements that may have changed rows: 1 left out",
        "databus: transactions without an end: 1 left out",
    ]
    assert "ends inside the event at" in notices[-1]


def test_a_transaction_whose_end_is_not_in_the_files_is_reported_and_with_lenient_left_out(run, binlog_file):
    file = binlog_file().transaction().gtid().query("BEGIN").row()
    path = file.write()
    code, lines, notices = run(path, "--format", "databus", "--quiet")
    assert (code, len(lines)) == (0, 2)
    assert notices == ["databus: the end of the last transaction is not in the files; the output lacks it, too"]
    code, lines, notices = run(path, "--format", "databus", "--quiet", "--lenient")
    assert (code, len(lines)) == (0, 1)
    assert notices == [
        f"databus: transactions without an end: 1 left out, the first at binlog.000007:{file.starts[-1]}"
    ]


def test_a_transaction_that_the_next_file_does_not_continue_stops_the_command(run, binlog_file):
    cut = binlog_file("binlog.000006").gtid().query("BEGIN").row().write()
    path = binlog_file().transaction().write()
    code, lines, notices = run(cut, path, "--format", "databus", "--quiet")
    assert (code, len(lines)) == (1, 1)
    assert "databus: a transaction before binlog.000007:" in notices[-1]


def test_with_an_offset_inside_a_transaction_the_rest_of_that_transaction_is_left_out(run, binlog_file):
    """Without --lenient, later rows outside a transaction stop the command."""
    file = binlog_file().transaction().transaction()
    row, begin = str(file.starts[2]), str(file.starts[6])
    code, lines, notices = run(file.write(), "--format", "databus", "--quiet", "--from", row)
    assert (code, len(lines)) == (0, 1)
    first = f"binlog.000007:{file.starts[3]}"
    assert notices == [f"databus: rows outside a transaction: 1 left out, the first at {first}"]
    code, lines, notices = run(file.row().write(), "--format", "databus", "--quiet", "--from", row)
    assert (code, len(lines)) == (1, 1)
    assert notices[-1].startswith(
        f"databus: rows of shop.items outside a transaction at binlog.000007:{file.starts[-1]}"
    )
    code, lines, notices = run(file.write(), "--format", "databus", "--quiet", "--from", begin, "--lenient")
    assert (code, len(lines)) == (0, 1)


@pytest.mark.parametrize(
    "until",
    [
        lambda file: file.query("BEGIN").row().xid(),
        lambda file: file.query("XA START 'x'").row().xa_prepare(one_phase=True),
        lambda file: file.xid().query("CREATE TABLE t (id INT)"),
    ],
    ids=["a transaction", "an XA transaction", "its end"],
)
def test_an_offset_inside_a_transaction_excuses_no_rows_outside_a_later_one(run, binlog_file, until):
    file = until(binlog_file().row()).row()
    code, lines, notices = run(file.write(), "--format", "databus", "--quiet", "--from", str(file.starts[0]))
    assert (code, len(lines)) == (1, 1)
    assert notices[0].startswith("databus: rows outside a transaction: 1 left out")
    position = f"binlog.000007:{file.starts[-1]}"
    assert notices[1].startswith(f"databus: rows of shop.items outside a transaction at {position}")


def test_statements_on_tables_that_the_files_do_not_describe_are_left_out(run, binlog_file):
    file = binlog_file().query("ALTER TABLE t ADD c INT").query("CREATE TABLE t (id INT)").query("DROP TABLE u")
    code, lines, notices = run(file.write(), "--format", "databus", "--quiet")
    assert (code, len(lines)) == (0, 1)
    first = f"binlog.000007:{file.starts[0]}"
    assert notices == [
        f"databus: statements on tables that the files do not describe: 2 left out, the first at {first}"
    ]


@pytest.mark.parametrize("options", [(), ("--lenient",)])
@pytest.mark.parametrize(
    ("outcome", "count", "left_out"),
    [
        (lambda file: file, 2, "transactions that end in XA PREPARE: 1 left out"),
        (lambda file: file.query("XA ROLLBACK X'78',X'',1"), 2, ""),
        (lambda file: file.query("XA COMMIT X'78',X'',1"), 3, ""),
        (lambda file: file.query("XA COMMIT X'79',X'',1"), 2, "transactions that begin with XA COMMIT: 1 left out"),
    ],
    ids=["none", "rollback", "commit", "commit of another"],
)
def test_rows_of_a_prepared_transaction_are_printed_at_its_commit(run, binlog_file, outcome, count, left_out, options):
    path = log_of(binlog_file, lambda file: outcome(file.query("XA START X'78',X'',1").row().xa_prepare()))
    code, lines, notices = run(path, "--format", "databus", "--quiet", *options)
    assert (code, len(lines)) == (0, count)
    assert [notice.partition(",")[0] for notice in notices if left_out in notice] == [f"databus: {left_out}"] * bool(
        left_out
    )


def test_real_rows_that_lack_columns_stop_the_command_and_a_real_xa_transaction_is_printed(run):
    code, lines, notices = run(str(M1), "--quiet", "--format", "databus")
    assert (code, len(lines)) == (1, 7)
    assert notices[-1].startswith("databus: rows of lab.j at m1.bin:3537 lack columns (")
    [xa] = (event for event, _ in read_files([str(M1)]) if isinstance(event, Gtid) and event.gtid.endswith("1:11"))
    code, lines, _ = run(str(M1), "--quiet", "--format", "databus", "--from", str(xa.start))
    assert (code, [line["key"]["Pos"]["Pos"] for line in lines]) == (0, [4898, 5102, 5392])


def test_lenient_is_refused_for_json(run, binlog_file):
    code, lines, notices = run(binlog_file().write(), "--lenient")
    assert (code, lines) == (2, [])
    assert notices == ["databus: --lenient is not for json, which leaves nothing out"]
