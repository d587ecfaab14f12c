"""`databus binlog` on files that MariaDB 10.11 and MySQL 9 wrote, and on damaged or missing files."""

import io
import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from databus_binlog import Gtid, TableMap, Xid
from databus_cli.__main__ import main
from databus_cli.binlog.files import read_files
from databus_cli.binlog.lines import Json
from databus_cli.binlog.tables import Completion
from databus_cli.selection import Selection
from databus_messages import transaction_buffer

FILES = Path(__file__).parents[2] / "fixtures" / "mariadb-binlog"
GOLDEN = Path(__file__).parents[2] / "golden" / "mysql.bin"

#: x1.bin and x2.bin lack the column names and metadata of these tables. After a column's name, `+` stands for
#: unsigned, `!` for binary, and `.n` for n fraction digits.
COLUMNS = {
    "tt": "id a_tiny a_utiny+ a_small a_usmall+ a_med a_umed+ a_int a_uint+ a_big a_ubig+ f d dc dc2 dc3 dc4 b1 b9 b64 "
    "y dt tm tm1 tm2 tm3 tm4 tm6 dtm dtm1 dtm3 dtm6 ts ts2 ts6 c10 c100 vc10 vc300 bn! vb! tb! bl! mb! lb! tx js en st "
    "st9 g! u! i6! i4!",
    "uu": "id u! i6! i4!",
    "oldt": "id t.0 t1.1 t3.3 t6.6 d.0 d1.1 d3.3 d6.6 s.0 s1.1 s3.3 s6.6",
    "comp": "id vc vb! bl! tx tb!",
}


def described(table: TableMap) -> TableMap:
    """Complete a table map from COLUMNS; then add what is still missing, as the command does."""
    columns = list(table.columns)
    for index, text in enumerate(COLUMNS.get(table.name, "").split()):
        name, _, digits = text.rstrip("+!").partition(".")
        attributes = {"name": name} | ({"metadata": int(digits)} if digits else {})
        attributes |= {"unsigned": True} if text.endswith("+") else {"charset": "binary"} if text.endswith("!") else {}
        columns[index] = msgspec.structs.replace(columns[index], **attributes)
    table = msgspec.structs.replace(table, columns=tuple(columns))
    return Completion(lambda _: None).describe(table)


def path(name: str) -> str:
    return str(FILES / name)


def lines_of(name: str) -> bytes:
    lines = Json(Selection(None), Completion(print))
    events = read_files([path(name)], describe=described)
    return b"".join(line for event, tables in events for line in lines.of(event, tables))


def golden(name: str) -> bytes:
    return (FILES / name).with_suffix(".jsonl").read_bytes()


@pytest.mark.parametrize("name", ["x1.bin", "x2.bin"])
def test_with_complete_metadata_the_lines_have_the_values_of_the_statements(name):
    assert lines_of(name) == golden(name)


@pytest.mark.parametrize("name", ["x3.bin", "x4.bin", "x5.bin", "../mysql-binlog/m1.bin"])
def test_the_command_prints_the_values_of_the_statements_and_a_summary(name):
    command = [sys.executable, "-m", "databus_cli", "binlog", path(name)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == golden(name)
    assert b"\nposition" in done.stderr


def test_missing_metadata_is_assumed_and_reported_once_per_table(run):
    code, lines, notices = run(path("x1.bin"), "--quiet")
    row = next(line["row"] for line in lines if line.get("table") == "tt")
    assert code == 0
    assert (row["@3"], row["@39"], row["@43"]) == ("-1", "long vc", {"base64": "3q2+7w=="})
    assert [notice.split()[1] for notice in notices] == ["lab.tt:", "lab.st9:", "lab.uu:"]


def test_missing_fraction_digits_stop_the_command_if_the_table_is_selected(run):
    code, lines, notices = run(path("x2.bin"), "--quiet")
    assert code == 1
    assert lines[-1]["query"].startswith("create table oldt")
    assert notices[-1].startswith("databus: column @2 of lab.oldt: ")
    assert notices[-1].endswith("(x2.bin:2019); other tables can be read with --tables")
    code, lines, _ = run(path("x2.bin"), "--quiet", "--tables", "lab.c*")
    assert code == 0
    assert {line["table"] for line in lines if "table" in line} == {"cz", "comp"}


def test_patterns_select_rows_and_the_statements_that_may_concern_them(run):
    _, lines, _ = run(path("x2.bin"), "--quiet", "--tables", "shop.*")
    assert [line["query"].split()[0] for line in lines] == ["XA", "XA", "XA", "SAVEPOINT"]
    _, lines, _ = run(path("x3.bin"), "--tables", "lab.st?", "*.sq")
    assert {line["table"] for line in lines if line["type"] != "query"} == {"st9", "sq"}
    assert sum(line["type"] == "query" for line in lines) == 11


def test_format_databus_prints_the_records_that_the_publisher_would_write(run):
    code, lines, _ = run(path("x1.bin"), "--quiet", "--format", "databus", "--tables", "lab.meta2")
    assert code == 0
    assert [line["key"] for line in lines] == [
        {"Pos": {"Name": "x1.bin", "Pos": end}, "Action": action}
        for end, action in ((7966, "DDL"), (8190, "DML"), (8431, "DML"))
    ]
    _, inserted, _ = (line["value"] for line in lines)
    assert [column["Name"] for column in inserted["Table"]["Columns"]] == ["id", "v", "inv"]
    assert inserted["Rows"] == [["MQ==", "YQ==", "NQ=="]]


def test_a_key_that_the_files_do_not_describe_is_assumed_to_be_the_primary_key(run):
    _, lines, notices = run(path("x1.bin"), "--from", "7145", "--quiet", "--format", "databus", "--tables", "lab.meta*")
    tables = {line["value"]["Table"]["Name"]: line["value"]["Table"] for line in lines}
    assert [tables[name]["PKColumns"] for name in ("meta", "meta2")] == [[0, 8], [0]]
    [*_, notice] = notices  # the key of lab.meta contains a prefix, so it is the primary key
    assert notice.startswith("databus: tables whose key is assumed to be the primary key: 1 (lab.meta2); ")
    _, _, notices = run(str(GOLDEN), "--quiet", "--format", "databus")
    assert notices == []


def test_rows_above_the_limit_have_no_values_in_json_and_no_record_in_other_formats(run):
    _, expected, _ = run(path("x4.bin"))
    code, lines, notices = run(path("x4.bin"), "--row-limit", "40B")
    assert code == 0
    assert len(lines) == len(expected) == 5
    for line, row in zip(lines, expected, strict=True):
        del row["row"], row["query"]  # the statement is above the limit, too
        assert line == row | {"type": "oversized", "action": "insert", "size": row["end"] - row["start"]}
    assert any("OversizedRows 5" in notice for notice in notices)
    limited = ("--from", "2011", "--row-limit", "200B", "--format", "databus", "--lenient", "--quiet")
    code, lines, notices = run(path("../mysql-binlog/m1.bin"), *limited)
    assert (code, [line["key"]["Pos"]["Pos"] for line in lines]) == (0, [3955, 4267, 4898, 5102, 5392])
    assert notices[-1].startswith("databus: rows above --row-limit: 3 left out; this format has no message for them")


@pytest.mark.parametrize("memory", [1 << 26, 10])
def test_a_format_can_mark_the_last_row_of_each_transaction(run, monkeypatch, memory):
    monkeypatch.setattr(transaction_buffer, "_MEMORY_BYTES", memory)
    arguments = ("--quiet", "--format", "maxwell-json", "--option", "output_xoffset=true", "--tables", "shop.*")
    code, lines, _ = run(str(GOLDEN), *arguments)
    transactions = [
        [line["value"] for line in transaction]
        for _, transaction in groupby(lines, key=lambda line: line["value"]["xid"])
    ]
    assert code == 0
    assert all([row.get("commit") for row in rows] == [None] * (len(rows) - 1) + [True] for rows in transactions)
    sale = max(transactions, key=len)
    assert [row["xoffset"] for row in sale[:-1]] == list(range(len(sale) - 1))


def test_a_transaction_without_an_end_is_printed_only_by_formats_that_do_not_need_the_end(run, tmp_path):
    xid = next(event for event, _ in read_files([str(GOLDEN)]) if isinstance(event, Xid))
    (tmp_path / "open.bin").write_bytes(GOLDEN.read_bytes()[: xid.start])
    code, lines, notices = run(str(tmp_path / "open.bin"), "--quiet", "--format", "maxwell-json")
    assert (code, lines) == (0, [])
    assert "databus: rows of a transaction whose end is not in the files: 1 left out; " in "".join(notices)
    code, lines, notices = run(str(tmp_path / "open.bin"), "--quiet", "--format", "databus")
    assert (code, [line["key"]["Action"] for line in lines]) == (0, ["DDL", "DML"])
    assert notices == ["databus: the end of the last transaction is not in the files; the output lacks it, too"]


def test_records_begin_at_the_given_offset(run):
    arguments = (str(GOLDEN), "--quiet", "--format", "canal-json", "--tables", "shop.orders")
    _, expected, _ = run(*arguments)
    [sale] = (event for event, _ in read_files([str(GOLDEN)]) if isinstance(event, Gtid) and event.gtid[-3:] == ":18")
    code, lines, _ = run(*arguments, "--from", str(sale.start))
    assert code == 0
    assert [line["value"]["type"] for line in expected] == ["QUERY", "CREATE", "INSERT", "UPDATE", "UPDATE"]
    assert [line["value"]["data"] for line in lines] == [line["value"]["data"] for line in expected[2:]]


@pytest.mark.parametrize("start", [4, 256, 417, 3822])
def test_json_lines_begin_at_the_given_offset(run, start):
    code, lines, _ = run(path("x3.bin"), "--from", str(start))
    expected = [json.loads(line) for line in golden("x3.bin").splitlines()]
    assert code == 0
    assert [line | {"gtid": None} for line in lines] == [
        line | {"gtid": None} for line in expected if line["start"] >= start
    ]


@pytest.mark.parametrize("start", [5, 255, 700, 707, 5000, 5510])
def test_an_offset_at_which_no_event_starts_is_reported_in_one_line(run, start):
    code, lines, notices = run(path("x3.bin"), "--from", str(start))
    assert (code, lines) == (1, [])
    [notice] = notices
    assert notice.startswith(f"databus: no event can be read at x3.bin:{start} (")


def test_a_truncated_file_is_printed_up_to_its_last_complete_event(run, tmp_path):
    cut = tmp_path / "cut.bin"
    cut.write_bytes(Path(path("x4.bin")).read_bytes()[:-50])
    code, lines, notices = run(str(cut))
    assert code == 1
    assert [line["row"]["@1"] for line in lines] == ["102", "101", "103", "104", "105"]
    assert notices[-1].startswith("databus: cut.bin ends inside the event at 1498; the file is truncated, or ")


def test_a_corrupt_file_is_printed_up_to_the_corrupt_event(run, tmp_path):
    data = bytearray(Path(path("x4.bin")).read_bytes())
    data[1000] ^= 1
    (tmp_path / "bad.bin").write_bytes(data)
    code, lines, notices = run(str(tmp_path / "bad.bin"))
    assert (code, len(lines)) == (1, 2)
    assert notices[-1].startswith("databus: wrong checksum of WRITE_ROWS_V1 event at bad.bin:997;")


@pytest.mark.parametrize("content", [b"", b"\xfe", b"PK\3\4...."])
def test_a_file_that_is_not_a_binlog_is_refused(run, tmp_path, content):
    (tmp_path / "some.zip").write_bytes(content)
    code, lines, notices = run(str(tmp_path / "some.zip"))
    assert (code, lines, len(notices)) == (1, [], 1)
    assert "some.zip is not a binlog file" in notices[0]


def test_a_missing_file_is_named(run):
    assert run("nowhere.bin") == (1, [], ["databus: nowhere.bin: No such file or directory"])


def test_files_and_standard_input_are_read_in_the_given_order(run, monkeypatch, tmp_path):
    (tmp_path / "mbin.000004").write_bytes(Path(path("x5.bin")).read_bytes())
    stdin = io.TextIOWrapper(io.BytesIO(Path(path("x4.bin")).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    code, lines, notices = run(path("x3.bin"), str(tmp_path / "mbin.000004"), "-", path("x5.bin"))
    assert code == 0
    assert [line["file"] for line in lines] == ["x3.bin"] * 27 + ["stdin"] * 5
    assert [notice for notice in notices if "the next file is" in notice] == [
        "databus: stdin continues in mbin.000006, but the next file is x5.bin"
    ]


def test_the_summary_has_the_counts_and_the_range_of_the_files(run):
    _, _, notices = run(path("x3.bin"), path("x4.bin"))
    summary = dict(notice.split(maxsplit=1) for notice in notices if not notice.startswith("databus:"))
    assert summary["bytes"] == "7,080"
    assert summary["transactions"] == "28"
    assert summary["rows"] == "21: insert 15, update 4, delete 2"
    assert summary["tables"] == "5: lab.mi 11, lab.st9 6, lab.ctas 2, lab.vcol 1, lab.sq 1"
    assert summary["position"] == "x3.bin:4 … x4.bin:1571"
    assert summary["time"] == "2026-11-21 00:03:04 … 2026-11-21 00:11:13 UTC"


@pytest.mark.parametrize(
    "arguments",
    [
        ["x", "--from", "3"],
        ["x", "--from", "-1"],
        ["x", "--tables", "shop"],
        ["x", "--format", "xml"],
        ["x", "--row-limit", "big"],
    ],
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["binlog", *arguments])
    assert "databus binlog: error: " in capsys.readouterr().err


def test_a_closed_output_pipe_is_not_an_error():
    command = [sys.executable, "-m", "databus_cli", "binlog", "--quiet", *[path("x1.bin")] * 20]
    read, write = os.pipe()
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        assert os.read(read, 10) == b'{"type":"q'
        os.close(read)
        assert process.stderr
        notices = process.stderr.read()
    assert process.returncode == 0
    assert b"Error" not in notices
