"""The window of a chunk: what changes in it is left out of the chunk, and it closes where the stream has the rest."""

import pytest

from databus_core.events import Action
from databus_reader.backfill import window as module
from databus_reader.backfill.window import Window
from unit.reader.backfilled import BOUNDARY, PLACE, TABLE, batch, changed, chunk, ids, key


@pytest.fixture
async def window() -> Window:
    opened = Window()
    opened.open(BOUNDARY)
    return opened


@pytest.mark.parametrize("action", [Action.INSERT, Action.UPDATE, Action.DELETE])
async def test_rows_that_change_in_the_window_are_left_out(window: Window, action: Action) -> None:
    assert window.collect(changed(2, 4, action=action), TABLE)
    found = list(window.unchanged(chunk(batch(1, 2, 3), batch(4), batch(5, 6))))
    assert ids(found) == [1, 3, 5, 6]
    assert [each.count for each in found] == [2, 2]


async def test_both_keys_of_an_updated_row_are_left_out(window: Window) -> None:
    window.collect(changed(1, 9), TABLE)
    assert ids(window.unchanged(chunk(batch(1, 2), batch(9)))) == [2]


async def test_batches_without_changed_rows_stay_packed(window: Window) -> None:
    found = chunk(batch(1, 2), batch(3))
    assert window.unchanged(found) is found.batches
    window.collect(changed(3), TABLE)
    assert next(iter(window.unchanged(found))) is found.batches[0]


async def test_a_chunk_read_by_another_key_than_the_changed_rows_have_is_refused(window: Window) -> None:
    window.collect(changed(1), TABLE)
    assert window.unchanged(chunk(batch(1, 2), by=key("code"))) is None


async def test_a_window_with_too_many_changed_rows_has_to_be_given_up(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_KEYS", 2)
    assert window.collect(changed(1, 2), TABLE)
    assert window.collect(changed(2), TABLE)
    assert not window.collect(changed(3), TABLE)


@pytest.mark.parametrize(
    ("place", "may_close"),
    [
        (("log.000001", 499), False),
        (("log.000001", 500), True),
        (("log.000002", 4), True),
    ],
)
async def test_a_window_closes_at_the_first_boundary_behind_the_end_of_the_log(
    window: Window, place: tuple[str, int], may_close: bool
) -> None:
    assert not window.may_close(place)  # nothing is read
    window.deliver(chunk(batch(1)), PLACE)
    assert window.may_close(place) is may_close


async def test_a_window_that_is_not_open_does_not_close() -> None:
    window = Window()
    window.deliver(chunk(batch(1)), PLACE)
    assert not window.may_close(PLACE)
    window.give_up()
    window.open(BOUNDARY)
    assert (window.start.result(), window.closed.result()) == (None, False)
    assert not window.is_open
    assert not window.may_close(PLACE)


async def test_a_window_holds_the_stream_from_its_start_to_its_result() -> None:
    window = Window(holds=True)
    assert not window.holds_stream
    window.open(BOUNDARY)
    assert window.holds_stream
    window.deliver(chunk(), PLACE)
    assert not window.holds_stream


async def test_a_window_opens_once(window: Window) -> None:
    window.open(module.Position("", "log.000001", 900))
    assert window.start.result() == BOUNDARY


async def test_a_whole_table_is_exact_at_its_place_or_if_it_has_not_changed(window: Window) -> None:
    window.deliver(chunk(), PLACE)
    behind = PLACE[0], PLACE[1] + 1
    assert window.is_exact(behind)
    window.collect(changed(1), TABLE)
    assert window.is_exact(PLACE)
    assert not window.is_exact(behind)
