"""What can be committed after a failure, after `End`, and of a skipped transaction."""

import msgspec
import pytest

from databus_core.errors import FatalError, GenerationLost, KafkaUnavailable
from databus_core.events import (
    Action,
    End,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    Skipped,
    SnapshotTruncate,
)
from databus_wire.kafka_records import sequence_text
from unit.publisher.publishing import CHUNK, COMMIT, ROW, START, TABLE, add, begin


@pytest.mark.parametrize("message_format", ["databus", "maxwell-json"])
async def test_a_transaction_that_was_not_sent_completely_cannot_be_committed(publish, message_format):
    """Maxwell's messages are sent only when the transaction ends, so they may fail as late as at its Commit."""
    publication, producer = publish(message_format)
    await add(publication, *START, begin(1), ROW, COMMIT)
    assert publication.committable
    producer.accepts = False
    with pytest.raises(FatalError, match="accepts batches of 10 bytes"):
        await add(publication, begin(2), ROW, COMMIT)
    assert not publication.committable


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (ROW, r"accepts batches of 10 bytes: raise its max\.message\.bytes, and its segment\.bytes if .*, or set"),
        (
            OversizedRow(TABLE.fingerprint, Action.INSERT, 0, 10, 20, 9),
            r"reader\.row_limit: raise reader\.row_limit, or set",
        ),
        (
            msgspec.structs.replace(ROW, rows=msgspec.Raw(msgspec.msgpack.encode([[b"\xff"]]))),
            r"\(UnicodeDecodeError\): set",
        ),
    ],
)
async def test_policy_stop_advises_what_helps(publish, event, error):
    publication, producer = publish("tdsql")
    await add(publication, *START, begin(1))
    producer.accepts = False
    with pytest.raises(FatalError, match=rf"{error} publisher\.oversize to another policy$"):
        await add(publication, event)


async def test_rows_of_a_backfill_and_the_truncation_before_them_are_committed_at_once(publish):
    publication, producer = publish("databus")
    backfill = SnapshotTruncate(TABLE.fingerprint), CHUNK
    await add(publication, *START, begin(1), *backfill, COMMIT, begin(2), ROW, COMMIT)
    actions = [msgspec.json.decode(record.value)["Action"] for record in producer.records]
    assert actions == ["truncate", "insert", "insert"]
    assert producer.started is not None
    assert producer.started.transaction == 1
    assert publication.committable


async def test_the_progress_of_a_commit_counts_when_the_commit_has_ended(publish):
    publication, _ = publish("databus")
    await add(publication, *START, begin(1), CHUNK, COMMIT)
    await add(publication, begin(2), ROW, COMMIT)
    assert publication.committed.transaction == 0
    await publication.finish_commit()
    assert publication.committed.transaction == 1
    await publication.start_commit()
    assert (await publication.abandon()).transaction == 2


async def test_the_progress_counts_when_records_go_to_topics_for_the_first_time(publish):
    """Consumers need to look for new topics only when the count changes; a letter's topic is one, too."""
    publication, producer = publish("databus", "deadletter")
    unread = OversizedRow(TABLE.fingerprint, Action.INSERT, 0, 10, 20, 9)
    await add(publication, *START)
    for number, event in enumerate((ROW, ROW, unread, unread), 1):
        await add(publication, begin(number), event, COMMIT)
        await publication.commit()
    counts = {commit.transaction: commit.topics_opened for commit in producer.commits}
    assert counts == {0: None, 1: 1, 2: 1, 3: 2, 4: 2}


async def test_the_first_position_cannot_be_committed_without_the_head_of_the_schema_history(publish):
    publication, producer = publish("databus")
    producer.failure = KafkaUnavailable("away")
    with pytest.raises(KafkaUnavailable):
        await add(publication, *START)
    assert not publication.committable


async def test_a_heartbeat_that_was_not_sent_does_not_move_the_progress(publish):
    publication, producer = publish("debezium-json", heartbeat_interval_ms=1)
    await add(publication, *START)
    producer.accepts = False
    with pytest.raises(FatalError):
        await add(publication, Heartbeat("", "binlog.1", 40, 5_000))
    assert not publication.committable


async def test_the_end_event_commits_everything_before_it(publish):
    """The reader exits when the entry with `End` is trimmed, so everything must be committed before that."""
    publication, producer = publish("databus")
    await add(publication, *START, begin(1), ROW, COMMIT, End())
    assert (publication.ended, publication.committable) == (True, False)
    assert producer.commits[-1].transaction == 1


async def test_an_end_event_inside_a_transaction_means_that_the_generation_is_lost(publish):
    publication, _ = publish("databus")
    with pytest.raises(GenerationLost, match="inside a transaction"):
        await add(publication, *START, begin(1), ROW, End())
    assert not publication.ended


DDL = QueryEvent(TABLE.fingerprint, Action.ALTER, b"ALTER TABLE items COMMENT 'c'", 20, 25, TABLE.fingerprint)


@pytest.mark.parametrize(("message_format", "ddl"), [("databus", 1), ("maxwell-json", 0), ("canal-protobuf", 1)])
async def test_all_rows_of_a_skipped_transaction_are_dead_letters_and_nothing_else_is(publish, message_format, ddl):
    """Also with `publisher.oversize: stop`. DDL is certain, and frames would count the rows that are missing."""
    publication, producer = publish(message_format)
    unread = OversizedRow(TABLE.fingerprint, Action.INSERT, 1, 10, 20, 1 << 20)
    await add(publication, *START, begin(1), ROW, COMMIT)
    published = len(producer.records)
    producer.records.clear()
    await add(publication, begin(2), Skipped(), ROW, unread, COMMIT, begin(3), Skipped(), DDL, COMMIT)
    assert len(producer.records) == ddl
    letters = {letter.reason: (letter, value) for letter, value in producer.letters}
    assert letters.keys() == {"skipped", "unread"}
    letter, value = letters["skipped"]
    assert (letter.topic, letter.transaction, letter.table_name, letter.size) == ("t", 2, "shop.items", len(value))
    assert value
    assert producer.letter_sequences == [sequence_text(2, letter.row) for letter, _ in producer.letters]
    assert letter.error == "insert of shop.items at binlog.1:10 is in a transaction that is skipped"

    producer.records.clear()
    await add(publication, begin(4), ROW, COMMIT)
    assert (len(producer.records), len(producer.letters)) == (published, 2)
