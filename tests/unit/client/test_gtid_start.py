"""Where a GTID set is among the commits of a pipeline."""

import pytest

from databus.executed import Executed
from databus.gtid_start import GtidStart, _found
from databus_binlog import GtidSet, Position
from databus_core.errors import ChangesLost, InvalidSettings
from databus_core.progress import Progress, Reset

UUID = "8f4a8a1e-0000-11ee-8c90-0242ac120002"


def committed(transaction: int, gtids: str, seconds: int, reset: int = 0) -> tuple[Progress, int]:
    position = Position(gtids and f"{UUID}:{gtids}", "log.000001", transaction)
    return Progress(position, transaction, reset=Reset(reset) if reset else None), 1000 * seconds


#: transaction 7 is GTID 20, and 8 to 10 are among 21 to 30; they were published 100 and 200 s after the oldest one
HISTORY = [committed(6, "1-18", 1000), committed(7, "1-20", 1100), committed(10, "1-30", 1200)]


def found(gtids: str, history: list[tuple[Progress, int]] = HISTORY) -> GtidStart:
    return _found(history, GtidSet.of_either(f"{UUID}:{gtids}"), transaction_timeout=60)


@pytest.mark.parametrize(("gtids", "after"), [("1-18", 6), ("1-20", 7), ("1-30", 10)])
def test_a_set_at_a_commit_begins_after_it(gtids: str, after: int) -> None:
    start = found(gtids)
    assert (start.after, start.executed) == (after, None)


def test_a_set_between_two_commits_has_some_of_what_the_second_one_has() -> None:
    assert found("1-25").executed == Executed(f"{UUID}:1-25", until=10, before=f"{UUID}:1-20")
    assert found("1-18:20").after == 6  # 19 is missing


def test_only_later_commits_say_how_old_a_record_may_be() -> None:
    assert found("1-30").earliest_ms == 1_200_000
    assert found("1-20").earliest_ms == 1_080_000  # 120 s before the next commit: 60 s, and a minute
    behind = [*HISTORY, committed(11, "1-31", 1100)]  # of a publisher whose clock is behind
    assert found("1-20", behind).earliest_ms == 980_000


def test_a_set_from_before_the_oldest_progress_is_an_error() -> None:
    with pytest.raises(ChangesLost, match=rf"lacks transactions .* still has \(gtid:{UUID}:1-18\)"):
        found("1-17")


def test_commits_before_a_reset_do_not_count() -> None:
    """The reset went back: what is published after it has GTIDs that were published before."""
    after_reset = [*HISTORY, committed(50, "", 1300, reset=50), committed(51, "1-12", 1310, reset=50)]
    with pytest.raises(ChangesLost, match=rf"{UUID}:1-12"):
        found("1-11", after_reset)
    assert found("1-12", after_reset).after == 51


def test_gtids_of_the_other_kind_of_server_are_an_error() -> None:
    with pytest.raises(InvalidSettings, match="the pipeline has GTIDs of another kind of server"):
        _found(HISTORY, GtidSet.of_either("0-1-4"), 60)


@pytest.mark.parametrize(("transaction", "gtid", "has"), [(11, "", False), (9, f"{UUID}:25", True)])
def test_a_transaction_is_known_by_its_gtid_or_because_it_is_later(transaction: int, gtid: str, has: bool) -> None:
    executed = Executed(f"{UUID}:1-25", until=10, before=f"{UUID}:1-20")
    assert executed.has(transaction, gtid) is has
    assert not executed.has(9, f"{UUID}:26")
    with pytest.raises(InvalidSettings, match=f"begin with start='gtid:{UUID}:1-20', and expect some changes that"):
        executed.has(9, "")
