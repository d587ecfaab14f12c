"""`debezium-avro`, decoded by the schemas in the registry, as consumers decode it; and the client of the registry."""

import io
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote

import fastavro
import pytest

from databus_core.errors import InvalidSettings, PoisonError, RegistryUnavailable, SchemaRefused
from databus_core.events import Action, Column, Row, Table
from databus_messages.formats.base import DdlStatement, Record, TransactionEnd
from databus_messages.formats.debezium.avro import DebeziumAvro
from databus_messages.formats.debezium.codec import interleave
from databus_messages.formats.debezium.options import AvroOptions
from databus_messages.formats.debezium.registry import SchemaRegistry
from unit.messages.formats.debezium_samples import BEGIN, MYSQL, NOW_NS, T1, change, one_column

ANNE = [b"1", b"Anne"]


@dataclass
class FakeRegistry:
    """A fake schema registry, which the fixture `registry` serves over HTTP."""

    url: str = ""
    #: subject, schema, content type and authorization of each request to register, also of a refused one
    calls: list[tuple[str, Any, str, str | None]] = field(default_factory=list)
    schemas: dict[int, Any] = field(default_factory=dict)
    #: status and body of every response; None: requests to existing paths succeed
    problem: tuple[int, bytes] | None = None
    #: header of responses to POST
    content_encoding: str = "identity"

    def post(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        subjects, subject, versions = path.strip("/").split("/")
        assert (subjects, versions) == ("subjects", "versions")
        schema = json.loads(json.loads(body)["schema"])
        self.calls.append((unquote(subject), schema, headers["Content-Type"], headers["Authorization"]))
        if self.problem:
            return self.problem
        number = next((number for number, known in self.schemas.items() if known == schema), 1000 + len(self.schemas))
        self.schemas[number] = schema
        return 200, b'{"id":%d}' % number

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, *_ in self.calls]


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = registry.post(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Encoding", registry.content_encoding)
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            status, body = registry.problem or (
                (200, b'["AVRO"]') if self.path == "/schemas/types" else (404, b"<html>")
            )
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield registry
        server.shutdown()
        thread.join()


def debezium(registry: FakeRegistry, **options: object) -> DebeziumAvro:
    options = {"schema_registry_url": registry.url} | options
    format_ = DebeziumAvro(MYSQL, AvroOptions.model_validate(options))
    format_.clock = lambda: NOW_NS
    return format_


def read(registry: FakeRegistry, data: bytes | None) -> Any:
    """Decode data as a consumer does, by the schema whose id is in the data; require that no bytes are left."""
    assert data is not None
    zero, number = struct.unpack_from(">bI", data)
    assert zero == 0
    rest = io.BytesIO(data[5:])
    value = fastavro.schemaless_reader(rest, fastavro.parse_schema(registry.schemas[number]))
    assert not rest.read()
    return value


def after(registry: FakeRegistry, table: Table, *row: bytes | None, **options: object) -> Any:
    (record,) = debezium(registry, **options).change(change(Action.INSERT, list(row), table=table))
    return read(registry, record.value)["after"]


def test_a_consumer_reads_keys_and_values_by_the_registered_schemas(registry: FakeRegistry) -> None:
    (record,) = debezium(registry).change(change(Action.UPDATE, ANNE, [b"1", None]))
    assert read(registry, record.key) == {"id": 1}
    value = read(registry, record.value)
    assert (value["before"], value["after"]) == ({"id": 1, "name": "Anne"}, {"id": 1, "name": None})
    assert value["source"] == {
        "version": "3.6.1.Final", "connector": "mysql", "name": "srv1", "ts_ms": 1_700_000_000_000,
        "snapshot": "false", "db": "test", "sequence": None, "ts_us": 1_700_000_000_000_000,
        "ts_ns": 1_700_000_000_000_000_000, "table": "t1", "server_id": 223344, "gtid": None,
        "file": "mysql-bin.000003", "pos": 484, "row": 0, "thread": 7, "query": None,
    }  # fmt: skip
    assert [value[name] for name in ("transaction", "op", "ts_ms", "ts_us", "ts_ns")] == [
        None, "u", 1_700_000_000_042, 1_700_000_000_042_123, NOW_NS,
    ]  # fmt: skip


def test_schemas_equal_those_of_the_avro_converter(registry: FakeRegistry) -> None:
    list(debezium(registry).change(change(Action.INSERT, ANNE)))
    schemas = {subject: schema for subject, schema, *_ in registry.calls}
    assert schemas["srv1.test.t1-key"] == {
        "type": "record",
        "name": "Key",
        "namespace": "srv1.test.t1",
        "fields": [{"name": "id", "type": "int"}],
        "connect.name": "srv1.test.t1.Key",
    }
    envelope = schemas["srv1.test.t1-value"]
    assert {name: envelope[name] for name in envelope if name != "fields"} == {
        "type": "record",
        "name": "Envelope",
        "namespace": "srv1.test.t1",
        "connect.version": 2,
        "connect.name": "srv1.test.t1.Envelope",
    }
    before, later, source, transaction, op, ts_ms, *_ = envelope["fields"]
    assert before == {
        "name": "before",
        "type": [
            "null",
            {
                "type": "record",
                "name": "Value",
                "fields": [
                    {"name": "id", "type": "int"},
                    {"name": "name", "type": ["null", "string"], "default": None},
                ],
                "connect.name": "srv1.test.t1.Value",
            },
        ],
        "default": None,
    }
    assert later == {"name": "after", "type": ["null", "Value"], "default": None}
    assert (source["type"]["namespace"], source["type"]["name"]) == ("io.debezium.connector.mysql", "Source")
    marker = source["type"]["fields"][4]
    assert (marker["default"], marker["type"][1]) == ("false", "null")
    assert (marker["type"][0]["connect.default"], marker["type"][0]["connect.name"]) == (
        "false",
        "io.debezium.data.Enum",
    )
    assert (transaction["type"][1]["namespace"], transaction["type"][1]["name"]) == ("event", "block")
    assert (op["type"], ts_ms["type"]) == ("string", ["null", "long"])


def test_avro_schemas_keep_the_connect_types_of_values(registry: FakeRegistry) -> None:
    columns = (
        Column(name="small", type="smallint", raw_type="smallint"),
        Column(name="price", type="decimal", raw_type="decimal(10,2)"),
        Column(name="d", type="date", raw_type="date"),
    )
    row = (b"-3", b"-19.99", b"1970-01-11")
    table = Table(schema="test", name="t1", columns=columns)
    assert after(registry, table, *row) == {"small": -3, "price": Decimal("-19.99"), "d": 10}
    small, price, day = registry.calls[-1][1]["fields"][0]["type"][1]["fields"]
    assert small["type"] == {"type": "int", "connect.type": "int16"}
    assert price["type"] == {
        "type": "bytes",
        "scale": 2,
        "precision": 10,
        "connect.version": 1,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }
    assert day["type"] == {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}


@pytest.mark.parametrize(
    ("kind", "raw_type", "attributes", "text", "expected"),
    [
        ("bigint", "bigint", {}, b"-9223372036854775808", -(2**63)),
        ("bigint", "bigint", {}, b"9223372036854775807", 2**63 - 1),
        ("bigint", "bigint", {}, b"-1", -1),
        ("int", "int", {}, b"64", 64),
        ("double", "double", {}, b"0.1", 0.1),
        ("float", "float", {}, b"-1.5", -1.5),
        ("bit", "bit(1)", {}, b"1", True),
        ("bit", "bit(10)", {}, b"513", b"\x01\x02"),
        ("longblob", "longblob", {}, b"\xff\x00" * 5000, b"\xff\x00" * 5000),
        ("text", "text", {}, "é大😀".encode(), "é大😀"),
        ("set", "set('a','b')", {"values": ("a", "b")}, b"3", "a,b"),
        ("timestamp", "timestamp", {}, b"2021-02-03 04:05:06", "2021-02-03T04:05:06Z"),
        ("vector", "vector(2)", {}, struct.pack("<2f", 0.5, -3), [0.5, -3.0]),
        ("vector", "vector(2)", {}, b"", []),
        ("geometry", "geometry", {}, b"\xe6\x10\x00\x00\x01\x02", {"wkb": b"\x01\x02", "srid": 4326}),
    ],
)
def test_a_consumer_decodes_the_values_that_were_encoded(
    registry: FakeRegistry, kind: str, raw_type: str, attributes: dict[str, Any], text: bytes, expected: object
) -> None:
    for nullable in (False, True):
        assert after(registry, one_column(kind, raw_type, nullable=nullable, **attributes), text) == {"v": expected}
    assert after(registry, one_column(kind, raw_type, nullable=True, **attributes), None) == {"v": None}


def test_columns_of_the_same_type_share_one_record_schema(registry: FakeRegistry) -> None:
    columns = tuple(Column(name=name, type="point", raw_type="point", nullable=True) for name in "ab")
    point = bytes(4) + struct.pack("<BIdd", 1, 1, 1.5, -2)
    found = after(registry, Table(schema="test", name="t1", columns=columns), point, point)
    assert found["a"] == found["b"] == {"x": 1.5, "y": -2.0, "wkb": point[4:], "srid": None}


def test_names_are_sanitized_for_avro(registry: FakeRegistry) -> None:
    columns = tuple(Column(name=name, type="int", raw_type="int") for name in ("2nd", "größe", "a-b"))
    table = Table(schema="odd-db", name="1t", columns=columns, primary_key=(0,))
    (record,) = debezium(registry, prefix="my-shop").change(change(Action.INSERT, [b"1", b"2", b"3"], table=table))
    assert read(registry, record.key) == {"_2nd": 1}
    assert read(registry, record.value)["after"] == {"_2nd": 1, "gr__e": 2, "a_b": 3}
    subject, schema, *_ = registry.calls[-1]
    assert (subject, schema["namespace"]) == ("my-shop.odd-db.1t-key", "my_shop.odd_db._1t")


def test_columns_with_the_same_avro_name_are_rejected(registry: FakeRegistry) -> None:
    columns = tuple(Column(name=name, type="int", raw_type="int") for name in ("a-b", "a_b"))
    with pytest.raises(PoisonError, match=r"srv1\.test\.t1: column a-b gets the same Avro name"):
        after(registry, Table(schema="test", name="t1", columns=columns), b"1", b"2")


@pytest.mark.parametrize("rows", [[[None]], [[b"1"], [None]]])
def test_null_in_a_not_null_column_is_rejected(registry: FakeRegistry, rows: list[Row]) -> None:
    table = one_column("int", nullable=False)
    with pytest.raises(PoisonError, match="does not fit its column"):
        debezium(registry).change(change(Action.INSERT, *rows, table=table))


def test_an_unsigned_bigint_above_avros_long_needs_bigint_unsigned_precise(registry: FakeRegistry) -> None:
    table, text = one_column("bigint", unsigned=True), b"18446744073709551615"
    with pytest.raises(PoisonError, match="set bigint_unsigned=precise"):
        after(registry, table, text)
    assert after(registry, table, text, bigint_unsigned="precise") == {"v": Decimal(2**64 - 1)}


def test_metadata_topics_have_schemas(registry: FakeRegistry) -> None:
    format_ = debezium(registry, provide_transaction_metadata=True, heartbeat_interval_ms=1)
    format_.begin(BEGIN)
    began, inserted = format_.change(change(Action.INSERT, ANNE))
    (ended,) = format_.end(BEGIN, TransactionEnd(1, 900, 1))
    (heartbeat,) = format_.heartbeat(1_700_000_000_000_000)
    (altered,) = format_.statement(DdlStatement(T1, BEGIN, Action.ALTER, b"alter table t1 add n int", 484, 560))
    name = "file=mysql-bin.000003,pos=484"
    assert read(registry, inserted.value)["transaction"] == {"id": name, "total_order": 1, "data_collection_order": 1}
    assert read(registry, began.value)["event_count"] is None
    assert read(registry, ended.value)["data_collections"] == [{"data_collection": "test.t1", "event_count": 1}]
    assert read(registry, heartbeat.key) == {"serverName": "srv1"}
    ddl = read(registry, altered.value)
    assert (ddl["ddl"], ddl["source"]["snapshot"]) == ("alter table t1 add n int", "false")
    assert [column["name"] for column in ddl["tableChanges"][0]["table"]["columns"]] == ["id", "name"]
    assert {record.topic for record in (began, ended)} == {"srv1.transaction"}
    assert set(registry.subjects) >= {"srv1-key", "srv1-value", "srv1.transaction-key", "srv1.transaction-value"}


def test_a_schema_is_registered_again_only_after_it_changed(registry: FakeRegistry) -> None:
    format_ = debezium(registry)
    for _ in range(3):
        list(format_.change(change(Action.INSERT, ANNE, ANNE)))
    assert sorted(registry.subjects) == ["srv1.test.t1-key", "srv1.test.t1-value"]
    wider = Table(schema="test", name="t1", columns=(*T1.columns, Column(name="n", type="int", raw_type="int")))
    list(format_.change(change(Action.INSERT, [*ANNE, b"3"], table=wider)))
    assert registry.subjects[2:] == ["srv1.test.t1-value"]


def test_encoding_may_block_only_until_the_schemas_of_a_table_are_registered(registry: FakeRegistry) -> None:
    format_ = debezium(registry, provide_transaction_metadata=True)
    format_.open()
    topics = ("srv1", "srv1.transaction")
    assert sorted(registry.subjects) == [f"{topic}-{part}" for topic in topics for part in ("key", "value")]
    assert format_.may_block(T1)
    list(format_.change(change(Action.INSERT, ANNE)))
    assert not format_.may_block(T1)


def test_a_tombstone_has_no_value(registry: FakeRegistry) -> None:
    deleted, tombstone = debezium(registry).change(change(Action.DELETE, ANNE))
    assert tombstone == Record(deleted.key, None)


def test_registration_follows_confluents_api(registry: FakeRegistry) -> None:
    client = SchemaRegistry(f"{registry.url}/", user="me", password="secret")
    assert client.register("größe.t-value", "string") == client.register("größe.t-value", "string") == 1000
    assert client.register("other-value", "string") == 1000
    ((subject, schema, content_type, authorization), _) = registry.calls
    assert (subject, schema, content_type) == ("größe.t-value", "string", "application/vnd.schemaregistry.v1+json")
    assert authorization == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (
            409,
            b'{"error_code":409,"message":"incompatible"}',
            SchemaRefused,
            r"incompatible with subject s-value: incomp",
        ),
        (422, b'{"error_code":42201,"message":"Invalid schema"}', SchemaRefused, r"\(422\): Invalid schema \(42201\)"),
        (401, b"", InvalidSettings, r"to log in \(401\): set schema_registry_user"),
        (404, b"<html>", InvalidSettings, r"\(404\): Not Found; check schema_registry_url"),
        (500, b'{"error_code":50003,"message":"forward"}', RegistryUnavailable, r"answers 500: forward \(50003\)"),
        (429, b"", RegistryUnavailable, "answers 429"),
        (200, b"<html>", InvalidSettings, "is not a schema registry"),
        (429, b'{"error_code":1,"message":"\xff"}', RegistryUnavailable, "answers 429: Too Many Requests"),
    ],
)
def test_an_error_of_the_registry_is_either_a_refusal_or_retryable(
    registry: FakeRegistry, status: int, body: bytes, error: type[Exception], message: str
) -> None:
    client = SchemaRegistry(registry.url)
    registry.problem = status, body
    with pytest.raises(error, match=message):
        client.register("s-value", "string")
    if status in {401, 429, 500} or body == b"<html>":
        with pytest.raises((error, InvalidSettings), match=r"is not a schema registry|" + message):
            client.check()
    else:  # an error document is accepted: a registry that is too old for GET /schemas/types returns one
        client.check()
    registry.problem = None
    client.check()
    assert client.register("s-value", "string") == 1000


def test_a_right_on_one_subject_may_be_missing(registry: FakeRegistry) -> None:
    registry.problem = 403, b'{"error_code":40301,"message":"denied"}'
    client = SchemaRegistry(registry.url)
    with pytest.raises(SchemaRefused, match=r"to write subject s-value \(403\): set schema_registry_user"):
        client.register("s-value", "string")
    with pytest.raises(InvalidSettings, match=r"to read \(403\): set schema_registry_user"):
        client.check()


def test_an_unreachable_registry_is_retryable() -> None:
    client = SchemaRegistry("http://127.0.0.1:1")
    with pytest.raises(RegistryUnavailable, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        client.register("s-value", "string")
    with pytest.raises(RegistryUnavailable, match="cannot be reached"):
        client.check()


def test_a_response_that_cannot_be_inflated_is_retryable(registry: FakeRegistry) -> None:
    registry.content_encoding = "gzip"
    with pytest.raises(RegistryUnavailable, match="cannot be reached"):
        SchemaRegistry(registry.url).register("s-value", "string")


def test_check_detects_a_wrong_url(registry: FakeRegistry) -> None:
    with pytest.raises(InvalidSettings, match=r"/api is not a schema registry \(.*\); check schema_registry_url"):
        SchemaRegistry(f"{registry.url}/api").check()


def test_interleave_joins_only_columns_of_the_same_length() -> None:
    with pytest.raises(ValueError, match="same number of fields"):
        interleave([b"<", b"|", b">"], [[b"1", b"2"], [b"3"]])
    assert interleave([b"<", b"|", b">"], [[b"1", b"2"], [b"3", b"4"]]) == [b"<1|3>", b"<2|4>"]
