"""A table that cannot be published is parked until the reader has taken it over. All others flow on."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from databus_core.errors import GenerationLost, RuleMismatch, SchemaRefused, TopicRefused
from databus_core.events import (
    Action,
    DatabaseEvent,
    Event,
    QueryEvent,
    SnapshotEvent,
    SnapshotTruncate,
    StateRecord,
    TableDefinition,
)
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims
from databus_core.table_states import TableDoubt, doubt_key, encode, read_doubt
from databus_messages.formats.base import Change, Record
from databus_messages.formats.databus import Databus
from databus_messages.routing.partitions import Partition
from databus_publisher.publication import Publication
from unit.publisher.publishing import COMMIT, ROW, START, TABLE, Producer, Topics, add, begin

OTHER = replace(TABLE, name="other")
ALTERED = replace(TABLE, columns=(*TABLE.columns, replace(TABLE.columns[0], name="code")))
ROW_OF_OTHER = replace(ROW, table=OTHER.fingerprint)
ROW_OF_ALTERED = replace(ROW, table=ALTERED.fingerprint, rows=msgspec.Raw(msgspec.msgpack.encode([[b"1", b"2"]])))
FILL = [SnapshotTruncate(TABLE.fingerprint), SnapshotEvent(TABLE.fingerprint, 0, ROW.rows, 1)]


def state(doubt: TableDoubt | None) -> StateRecord:
    return StateRecord(doubt_key("shop", "items"), encode(doubt) if doubt else None)


TAKEN_OVER = TableDoubt(state="parked", reason="r", text="", file="binlog.1", offset=10, since_us=1, backfill="b")
FILLING = replace(TAKEN_OVER, state="filling")


class Broker(Producer):
    """Keeps the records of all topics."""

    transactional = True

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, Record]] = []

    async def send(self, partition: Partition, record: Record) -> bool:
        self.sent.append((partition.topic, record))
        return True

    def rows(self) -> list[str]:
        """Return tables and actions of the messages."""
        found = [msgspec.json.decode(record.value) for topic, record in self.sent if topic.startswith("shop.")]
        return [f"{each['Table']['Name']} {each['Action']}" for each in found]

    def doubts(self) -> list[TableDoubt | None]:
        records = [record for topic, record in self.sent if topic == "databus.tables.shop"]
        return [found[2] for each in records if (found := read_doubt(each.key, each.value))]

    def found_letters(self) -> list[Record]:
        return [record for topic, record in self.sent if topic == "databus.deadletter.shop"]


class Refusing(Topics):
    """Refuses topics until they are allowed."""

    refused = ""

    async def ensure_dead_letters(self) -> str:
        return "databus.deadletter.shop"

    async def ensure(self, topic: str, partitions: int | None = None) -> None:
        if topic == self.refused:
            raise TopicRefused(f"Kafka refused to create topic {topic}: not allowed")


Publish = Callable[..., tuple[Publication, Broker, Refusing]]


@pytest.fixture
def publish() -> Publish:
    def make(parked: Sequence[tuple[str, str]] = (), **doubt: object) -> tuple[Publication, Broker, Refusing]:
        routes = [
            {"match": ["shop.items"], "key": ["code"]},
            {"match": ["club.*"], "format": "canal-json"},
            {"match": ["*.*"]},
        ]
        settings = Settings.model_validate({"name": "shop", "publisher": {"routes": routes}, "doubt": doubt})
        producer: Any = Broker()
        topics: Any = Refusing()
        publication = Publication(settings, producer, topics, Progress(), known_claims(settings, []), parked)
        return publication, producer, topics

    return make


async def reported(publication: Publication, *events: Event) -> None:
    """Add a transaction in which a table is reported."""
    with pytest.raises(GenerationLost):
        await add(publication, *events, COMMIT)


CREATE_DATABASE = DatabaseEvent("club", Action.CREATE, b"CREATE DATABASE club", 20, 30, "utf8mb4", ())
BEGIN: list[Event] = [*START, TableDefinition(OTHER), TableDefinition(ALTERED)]


async def test_only_the_table_that_a_rule_does_not_fit_is_parked(publish: Publish) -> None:
    publication, broker, _ = publish()
    await reported(publication, *BEGIN, begin(1), ROW, ROW_OF_OTHER, ROW)
    assert broker.rows() == ["other insert"]
    [doubt] = broker.doubts()
    assert doubt
    assert (doubt.state, doubt.reason, doubt.file, doubt.offset, doubt.reported) == (
        "parked", "rule_mismatch", "binlog.1", 10, True,
    )  # fmt: skip
    assert "rule 1 does not fit table shop.items: key: there is no column code; mend the rule" in doubt.text
    assert [dict(each.headers)["reason"] for each in broker.found_letters()] == [b"parked"]
    assert (await publication.abandon()).transaction == 1


async def test_that_a_table_is_dropped_is_published_though_no_rule_fits_it(publish: Publish) -> None:
    publication, broker, _ = publish()
    drop = QueryEvent(TABLE.fingerprint, Action.DROP, b"DROP TABLE shop.items", 20, 30, TABLE.fingerprint)
    await add(publication, *BEGIN, begin(1), drop, COMMIT)
    assert (broker.rows(), broker.doubts()) == (["items drop"], [])


async def test_a_table_whose_topic_kafka_refuses_is_not_parked_when_it_is_dropped(
    publish: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    """Its load would fail for ever, and a new table of this name would be left out."""
    publication, broker, topics = publish(parked=[("shop", "items")])
    topics.refused = "shop.shop.items"
    drop = QueryEvent(ALTERED.fingerprint, Action.DROP, b"DROP TABLE shop.items", 20, 30, ALTERED.fingerprint)
    await add(publication, *BEGIN, begin(1), state(None), drop, COMMIT)
    assert (broker.rows(), broker.doubts()) == ([], [None])
    assert "DROP of shop.items is not published: Kafka refused to create topic shop.shop.items" in caplog.text


async def test_a_table_is_not_parked_under_the_name_that_a_rename_takes_from_it(
    publish: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    """Under this name there would be nothing to load."""
    publication, broker, topics = publish()
    topics.refused = "shop.shop.items"
    rename = QueryEvent(ALTERED.fingerprint, Action.ALTER, b"RENAME TABLE shop.items TO x", 20, 30, ALTERED.fingerprint)
    await add(publication, *BEGIN, begin(1), rename, ROW_OF_OTHER, COMMIT)
    assert (broker.rows(), broker.doubts()) == (["other insert"], [])
    assert "ALTER of shop.items is not published: Kafka refused to create topic shop.shop.items" in caplog.text


async def test_a_table_whose_topic_kafka_refuses_is_parked_until_kafka_accepts_it(publish: Publish) -> None:
    publication, broker, topics = publish()
    topics.refused = "shop.shop.items"
    await reported(publication, *BEGIN, begin(1), ROW_OF_ALTERED, ROW_OF_OTHER)
    assert broker.rows() == ["other insert"]
    [doubt] = broker.doubts()
    assert doubt
    assert doubt.reason == "topic_refused"
    assert "not allowed; create the topic" in doubt.text
    topics.refused = ""
    publication, broker, _ = publish(parked=[("shop", "items")])
    await add(publication, *BEGIN, state(TAKEN_OVER), begin(1), state(FILLING), ROW_OF_ALTERED, COMMIT)
    assert (broker.rows(), broker.doubts()) == (["items insert"], [TAKEN_OVER, FILLING])


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_table_whose_schema_the_registry_refuses_is_parked(
    publish: Publish, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """Formats register a schema when they encode the first row, which may be long after the first event."""

    def refuse(_: object, change: Change) -> list[Record]:
        if change.table == ALTERED:
            raise SchemaRefused("incompatible with subject items-value; set its compatibility")
        return [Record(None, b'{"Table": {"Name": "other"}, "Action": "insert"}')]

    publication, broker, _ = publish()
    alter = QueryEvent(ALTERED.fingerprint, Action.ALTER, b"ALTER", 10, 20, "")
    await add(publication, *BEGIN, begin(1), *([alter] if is_known else []), COMMIT)
    monkeypatch.setattr(Databus, "change", refuse)
    await reported(publication, begin(2), ROW_OF_ALTERED, ROW_OF_OTHER, ROW_OF_ALTERED)
    assert broker.rows() == ["items alter"] * is_known + ["other insert"]
    [doubt] = broker.doubts()
    assert doubt
    assert (doubt.reason, doubt.text) == (
        "schema_refused",
        "incompatible with subject items-value; set its compatibility",
    )


async def test_of_a_dropped_database_only_the_table_whose_topic_kafka_refuses_is_left_out(
    publish: Publish, caplog: pytest.LogCaptureFixture
) -> None:
    """It is gone, and without a topic nothing of it was published: there is nothing to park."""
    publication, broker, topics = publish()
    topics.refused = "shop.shop.items"
    tables = TABLE.fingerprint, OTHER.fingerprint
    drop = DatabaseEvent("shop", Action.DROP, b"DROP DATABASE shop", 20, 30, None, tables)
    await add(publication, *BEGIN, begin(1), drop, COMMIT)
    assert broker.rows() == ["other drop"]
    assert broker.doubts() == []
    assert "DROP of shop.items is not published: Kafka refused to create topic shop.shop.items" in caplog.text
    assert publication.committable


async def test_ddl_on_a_database_is_a_dead_letter_until_kafka_accepts_its_topic(publish: Publish) -> None:
    publication, broker, topics = publish()
    topics.refused = "shop.club"
    await add(publication, *BEGIN, begin(1), CREATE_DATABASE, ROW_OF_OTHER, COMMIT)
    [letter] = broker.found_letters()
    assert dict(letter.headers)["reason"] == b"no_topic"
    assert (broker.rows(), broker.doubts()) == (["other insert"], [])
    topics.refused = ""
    await add(publication, begin(2), CREATE_DATABASE, COMMIT)
    assert [topic for topic, _ in broker.sent][-1] == "shop.club"
    assert len(broker.found_letters()) == 1


async def test_ddl_on_a_database_is_published_once_a_table_with_the_same_topic_is(publish: Publish) -> None:
    publication, broker, topics = publish()
    topics.refused = "shop.club"
    await add(publication, *BEGIN, begin(1), CREATE_DATABASE, COMMIT)
    topics.refused = ""
    await publication._change_topics.open(["shop.club"])
    await add(publication, begin(2), CREATE_DATABASE, COMMIT)
    assert [topic for topic, _ in broker.sent][-1] == "shop.club"


async def test_ddl_on_a_database_stops_the_publisher_if_the_settings_say_so(publish: Publish) -> None:
    publication, _, topics = publish(on_doubt="stop")
    topics.refused = "shop.club"
    with pytest.raises(TopicRefused):
        await add(publication, *BEGIN, begin(1), CREATE_DATABASE)


async def test_the_generation_ends_with_the_transaction_in_which_a_table_is_reported(publish: Publish) -> None:
    """What the reader has sent behind it, for instance the end of a load, was sent without knowing of the report."""
    publication, broker, _ = publish()
    with pytest.raises(GenerationLost, match=r"the reader does not know yet that shop\.items cannot be published"):
        await add(publication, *BEGIN, begin(1), ROW, ROW_OF_OTHER, COMMIT, begin(2), state(None), ROW_OF_OTHER, COMMIT)
    assert (await publication.abandon()).transaction == 1
    assert (broker.rows(), len(broker.doubts())) == (["other insert"], 1)


async def test_a_load_while_the_cause_persists_reports_the_table_again(publish: Publish) -> None:
    publication, broker, _ = publish(parked=[("shop", "items")])
    await add(publication, *BEGIN, begin(1), state(TAKEN_OVER), COMMIT)
    await reported(publication, begin(2), *FILL, state(FILLING), state(None))
    assert broker.rows() == []
    assert [each and each.reported for each in broker.doubts()] == [False, True]


@pytest.mark.parametrize(
    ("earlier", "before"), [([], [ROW, state(TAKEN_OVER)]), ([], [state(TAKEN_OVER)]), ([("shop", "items")], [])]
)
async def test_ddl_that_does_not_fit_a_parked_table_reports_nothing_new(
    publish: Publish, caplog: pytest.LogCaptureFixture, earlier: list[tuple[str, str]], before: list[Event]
) -> None:
    """The publisher, the reader or an earlier generation has parked it. Once it is live, it is reported."""
    publication, broker, _ = publish(parked=earlier)
    await add(publication, *BEGIN, begin(1), *before, COMMIT)
    known = broker.doubts()
    caplog.clear()
    alter = QueryEvent(TABLE.fingerprint, Action.ALTER, b"ALTER", 10, 20, ALTERED.fingerprint)
    await add(publication, begin(2), alter, COMMIT)
    assert (broker.rows(), broker.doubts(), caplog.text) == ([], known, "")
    await reported(publication, begin(3), state(None), alter)
    assert [each and each.reported for each in broker.doubts()[len(known) :]] == [None, True]


async def test_ddl_that_makes_the_rule_fit_is_published_although_the_table_is_parked(publish: Publish) -> None:
    publication, broker, _ = publish(parked=[("shop", "items")])
    alter = QueryEvent(ALTERED.fingerprint, Action.ALTER, b"ALTER", 10, 20, TABLE.fingerprint)
    await add(publication, *BEGIN, begin(1), alter, COMMIT)
    assert (broker.rows(), broker.doubts()) == (["items alter"], [])


async def test_the_settings_can_stop_the_publisher(publish: Publish) -> None:
    publication, broker, _ = publish(on_doubt="stop")
    with pytest.raises(RuleMismatch, match="rule 1 does not fit"):
        await add(publication, *BEGIN, begin(1), ROW)
    assert broker.doubts() == []
