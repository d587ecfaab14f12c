"""`databus pipeline skip`: which transaction is meant, and what is said about it."""

from collections import Counter
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from databus_binlog import Decoder, Events, read_file
from databus_cli.__main__ import main
from databus_cli.arguments.pipeline import _transaction
from databus_cli.pipeline.skip import consequence, contents
from databus_cli.pipeline.transaction import Transaction, search
from databus_core.settings import Settings, StartAfterGtids, StartAt

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def stream(path: str) -> AsyncIterator[Events]:
    decoder = Decoder(file=Path(path).name, wanted=lambda schema, table: True)
    found = read_file(BytesIO(Path(path).read_bytes()).read, decoder)

    async def yielded() -> AsyncIterator[Events]:
        for events in found:
            yield events

    return yielded()


async def test_an_offset_anywhere_in_a_transaction_finds_its_beginning(binlog_file) -> None:
    file = binlog_file().transaction().transaction().gtid().query("ALTER TABLE t")
    path, starts = file.write(), file.starts
    begins = [starts[0], starts[5], starts[10]]  # a transaction has 5 events, with its table map
    for index, start in enumerate(starts):
        found = await search(stream(path), StartAt("binlog.000007", start + 1))
        assert found
        assert found.offset == begins[min(index // 5, 2)]
        assert found.rows == ({"shop.items": 1} if index < 10 else {})
    for nowhere in (StartAt("binlog.000007", 4), StartAt("binlog.000007", 10**6), StartAt("binlog.000008", starts[0])):
        assert await search(stream(path), nowhere) is None


async def test_a_gtid_finds_its_transaction(binlog_file) -> None:
    file = binlog_file().transaction()
    path = file.write()
    by_offset = await search(stream(path), StartAt("binlog.000007", file.starts[0]))
    assert by_offset
    assert await search(stream(path), StartAfterGtids(by_offset.gtid.upper())) == by_offset
    assert await search(stream(path), StartAfterGtids(f"{UUID}:99")) is None


async def test_a_transaction_that_ends_in_xa_prepare_and_its_xa_commit_are_recognised(binlog_file) -> None:
    file = binlog_file().gtid().query("XA START 'x'").row().xa_prepare().gtid().query("XA COMMIT X'78',X'',1")
    path, starts = file.write(), file.starts
    prepare = await search(stream(path), StartAt("binlog.000007", starts[0]))
    commit = await search(stream(path), StartAt("binlog.000007", starts[-1]))
    assert prepare
    assert commit
    assert (prepare.is_prepared, prepare.is_xa_commit) == (True, False)
    assert (commit.is_prepared, commit.is_xa_commit) == (False, True)
    assert contents(commit) == "the rows of an earlier XA PREPARE"


@pytest.mark.parametrize("heal", ["auto", "manual"])
def test_what_happens_is_said_before_it_is_confirmed(heal: str) -> None:
    settings = Settings.model_validate({"name": "p", "doubt": {"heal": heal}})
    heals = {"auto": "are parked and loaded again", "manual": "are parked and wait for `databus backfill start"}[heal]
    known, unknown = Transaction("", "f", 4, rows=Counter({"a.c": 1, "a.b": 2000})), Transaction("", "f", 4)
    assert (contents(known), contents(unknown)) == ("2,000 rows of a.b, 1 row of a.c", "no captured rows")
    assert consequence(settings, known).startswith("its rows become dead letters; ")
    assert consequence(settings, unknown).startswith("all captured tables ")
    assert heals in consequence(settings, known)
    assert heals in consequence(settings, unknown)


def test_a_transaction_is_named_by_gtid_or_position(capsys: pytest.CaptureFixture[str]) -> None:
    assert _transaction("bin.000007:1234") == StartAt("bin.000007", 1234)
    for gtid in ("0-1-9", f"{UUID}:5", f"{UUID}:tag:5"):
        assert _transaction(gtid) == StartAfterGtids(gtid)
    for wrong in ("latest", "time:2026-11-20T10:00:00Z", "bin.000007"):
        with pytest.raises(SystemExit) as ended:
            main(["pipeline", "skip", "--transaction", wrong])
        assert ended.value.code == 2
        assert f"expected a GTID or FILE:OFFSET, not '{wrong}'" in capsys.readouterr().err
