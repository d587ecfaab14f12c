"""What tests of the sink need: a publisher, a server of dumps in place of dump-api, and a reader of the lake."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from common.dump_output import Folder
from databus_binlog import Position
from databus_core import names
from databus_core.dead_letters import DeadLetter
from databus_core.events import Action, Column, QueryEvent, Row, Table
from databus_core.manifest import FileFormat, Manifest, State
from databus_core.progress import Progress, Reset, Routes, encode_progress
from databus_dump_api.parts import PartWriter
from databus_messages.formats.databus import Encoder
from databus_spark.formats import open_table
from databus_wire.kafka_records import sequence_text

Cells = dict[str, Any]

#: runs a test on both table formats
on_both_formats = pytest.mark.parametrize(
    "table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.lake)], indirect=True
)


def describe_table(name: str, *columns: str, key: Sequence[int] = (0,)) -> Table:
    """Return a table of schema shop; a column is `name raw_type`. Labels of an ENUM or SET are taken from its type."""
    described = []
    for name_and_type in columns:
        column, raw_type = name_and_type.split(" ", 1)
        kind = raw_type.split("(")[0].split(" ")[0]
        labels = tuple(raw_type[len(kind) + 1 : -1].replace("'", "").split(",")) if kind in ("enum", "set") else ()
        described.append(Column(name=column, type=kind, raw_type=raw_type, values=labels))
    return Table(schema="shop", name=name, columns=tuple(described), primary_key=tuple(key))


class SamplePublisher:
    """Publishes messages as the publisher does: each `send` is a Kafka transaction, and positions grow."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name = name
        self.position = Position(file="mysql-bin.000009", offset=100)
        #: ordinal of the last transaction
        self.transaction_number = 0
        #: of the progress: the server, and the GTID set, which no position of a record has
        self.server = self.gtids = ""
        #: topic → partition → offset after the last record, in the form of a manifest's `kafka_offsets`
        self.offsets: dict[str, dict[int, int]] = {}
        #: offset after the last dead letter
        self.letters_end = 0
        #: of the progress
        self.reset: Reset | None = None
        self.routes: Routes | None = None
        #: partitions of new topics
        self.partitions = 1
        self._bootstrap = bootstrap
        self._encoder = Encoder()

    async def __aenter__(self) -> "SamplePublisher":
        identity = names.transactional_id(self.name)
        self._producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=identity)
        self._admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await self._producer.start()
        await self._admin.start()
        await self._admin.create_topics([NewTopic(names.progress_topic(self.name), 1, 1)])
        await self.send_progress()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()
        letters = [names.dead_letter_topic(self.name)] * bool(self.letters_end)
        await self._admin.delete_topics([*self.offsets, *letters, names.progress_topic(self.name)])
        await self._admin.close()

    async def send(
        self, *events: tuple[Table, Action, Sequence[Row] | bytes], commit: bool = True, partition: int = 0
    ) -> None:
        """Publish row images or DDL, each as a transaction; without `commit`, abort the Kafka transaction.

        DDL goes to all partitions.
        """
        await self._producer.begin_transaction()
        for table, action, content in events:
            self.position = msgspec.structs.replace(self.position, offset=self.position.offset + 50)
            self.transaction_number += 1
            is_ddl = isinstance(content, bytes)
            for number in range(self.partitions) if is_ddl else [partition]:
                await self.put(table, *self._encode(table, action, content), number)
        await self._send_progress()
        await (self._producer.commit_transaction() if commit else self._producer.abort_transaction())

    async def transaction(self, *records: tuple[Table, Action, Sequence[Row], int, int]) -> None:
        """Publish a transaction: records of row images, each with its partition and the ordinal of its first row."""
        self.transaction_number += 1
        self.position = msgspec.structs.replace(self.position, offset=self.position.offset + 50)
        async with self._producer.transaction():
            for table, action, rows, partition, row in records:
                sequence = sequence_text(self.transaction_number, row)
                await self.put(table, *self._encode(table, action, rows), partition, sequence)
            await self._send_progress()

    async def dead_letter(self, table: Table, **more: Any) -> None:
        """Publish a transaction whose row has a dead letter instead of its record."""
        self.transaction_number += 1
        self.position = msgspec.structs.replace(self.position, offset=self.position.offset + 50)
        topic = names.dead_letter_topic(self.name)
        if not self.letters_end:
            await self._admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"})])
        letter = DeadLetter(
            **{"reason": "too_large", "error": "its record is too large", "action": "insert", "size": 9} | more,
            topic=f"{self.name}.{table.schema}.{table.name}",
            partition=0,
            schema=table.schema,
            table=table.name,
            gtid="",
            file=self.position.file,
            start=self.position.offset - 40,
            end=self.position.offset,
            transaction=self.transaction_number,
            row=0,
            time=0,
        )
        async with self._producer.transaction():
            headers = [*letter.headers(), (names.SEQUENCE_HEADER, sequence_text(letter.transaction, letter.row))]
            await self._producer.send_and_wait(topic, b"too large", letter.id, partition=0, headers=headers)
            tombstone = await self._producer.send_and_wait(topic, None, b"an earlier letter", partition=0)
            self.letters_end = tombstone.offset + 1
            await self._send_progress()

    async def statement(self, query: bytes, *tables: tuple[Table, Action]) -> None:
        """Publish a statement that has a message for each of these tables."""
        self.transaction_number += 1
        self.position = msgspec.structs.replace(self.position, offset=self.position.offset + 50)
        async with self._producer.transaction():
            for table, action in tables:
                await self.put(table, *self._encode(table, action, query))
            await self._send_progress()

    async def begin_again(self, *, snapshot: bool = False) -> None:
        """Publish what a reset of the pipeline leaves; `snapshot`: all rows follow."""
        self.transaction_number += 1
        self.reset = Reset(self.transaction_number, snapshot)
        await self.send_progress()

    async def send_progress(self) -> None:
        """Commit a progress record."""
        async with self._producer.transaction():
            await self._send_progress()

    async def _send_progress(self) -> None:
        position = msgspec.structs.replace(self.position, gtid_set=self.gtids)
        place = position, self.transaction_number, 1, self.server
        progress = encode_progress(Progress(*place, reset=self.reset, routes=self.routes))
        await self._producer.send_and_wait(names.progress_topic(self.name), progress, self.name.encode(), partition=0)

    async def send_raw(self, table: Table, key: bytes | None, value: bytes | None, sequence: bytes | None) -> None:
        """Publish a record with this key, value and sequence."""
        self.transaction_number += 1
        async with self._producer.transaction():
            await self.put(table, key, value, sequence=sequence)
            await self._send_progress()

    async def put(
        self, table: Table, key: bytes | None, value: bytes | None, partition: int = 0, sequence: bytes | None = b""
    ) -> None:
        """Send a record in the open transaction, with the sequence of the present transaction unless it has another."""
        topic = names.table_topic("{name}.{schema}.{table}", self.name, table.schema, table.name)
        if topic not in self.offsets:
            await self._admin.create_topics([NewTopic(topic, self.partitions, 1)])
            self.offsets[topic] = {}
        sequence = sequence_text(self.transaction_number, 0) if sequence == b"" else sequence
        headers = [] if sequence is None else [(names.SEQUENCE_HEADER, sequence)]
        record = await self._producer.send_and_wait(topic, value, key, partition=partition, headers=headers)
        self.offsets[topic] = self.offsets[topic] | {partition: record.offset + 1}

    def _encode(self, table: Table, action: Action, content: Sequence[Row] | bytes) -> tuple[bytes, bytes]:
        file, end = self.position.file, self.position.offset
        if isinstance(content, bytes):
            return self._encoder.query(table, file, QueryEvent(table.fingerprint, action, content, end - 40, end))
        return self._encoder.key(file, end), self._encoder.rows_value(table, action, content)


class DumpServer:
    """Serves dumps from a folder, by those routes of dump-api that the sink uses."""

    def __init__(self, folder: Path, pipeline: str) -> None:
        self.folder = folder
        self.pipeline = pipeline
        self.manifests: list[Manifest] = []
        self._numbers = count(1)
        #: responses when a dump is requested: the first to that request, the others to requests for the dump's state
        self.on_request: list[Manifest] = []
        #: what happens after a dump was requested
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        #: the tables of which a dump may be requested
        self.requested = ["shop.*"]
        #: patterns that no table matches
        self.refused: set[str] = set()
        #: `taken DUMP` and `released DUMP`, in order
        self.leases: list[str] = []
        #: `Range` headers of downloads
        self.ranges: list[str] = []
        #: names of the files that were requested
        self.downloaded: list[str] = []
        #: seconds that a lease is valid
        self.lease_ttl = 60.0
        #: attempts to renew a lease
        self.renewals: asyncio.Queue[None] = asyncio.Queue()
        #: statuses of the next answers to these attempts; later ones fail with 503
        self.renewal_answers: list[int] = []
        #: status of the answers to requests for a lease
        self.lease_answer = 200

    def manifest(
        self,
        position: Position,
        rows: dict[Table, Sequence[Row]],
        *,
        formats: Sequence[FileFormat] = (FileFormat.JSONL,),
        part_size: int = 2**20,
        **more: Any,
    ) -> Manifest:
        """Write a dump's files, with up to two rows in a line, and return its manifest."""
        files, dump = [], f"dump-{next(self._numbers)}"
        folder = self.folder / dump
        folder.mkdir()
        for (table, content), each in product(rows.items(), formats):
            parts = PartWriter(Folder(folder), table, each, part_size)
            for first in range(0, len(content), 2):
                parts.write(content[first : first + 2])
            files += parts.close()
        return Manifest(
            id=dump,
            pipeline=self.pipeline,
            created=datetime.now(UTC),
            formats=tuple(formats),
            position=position,
            tables=tuple(rows),
            files=tuple(files),
            **{"state": State.COMPLETE} | more,
        )

    def routes(self) -> list[Route]:
        return [
            Route("/v1/dumps", self._list),
            Route("/v1/dumps", self._request, methods=["POST"]),
            Route("/v1/dumps/{dump}", self._show),
            Route("/v1/dumps/{dump}/leases", self._lease, methods=["POST"]),
            Route("/v1/dumps/{dump}/leases/{lease}", self._renew, methods=["PUT"]),
            Route("/v1/dumps/{dump}/leases/{lease}", self._release, methods=["DELETE"]),
            Route("/v1/dumps/{dump}/files/{name}", self._file),
        ]

    async def _list(self, _: Request) -> Response:
        return _json({"dumps": self.manifests})

    async def _request(self, request: Request) -> Response:
        tables = (await request.json())["tables"]
        if unmatched := [each for each in tables if each in self.refused]:
            problem = {"detail": f"no captured and published table matches {', '.join(unmatched)}"}
            return Response(msgspec.json.encode(problem), 422, media_type="application/problem+json")
        assert tables == self.requested
        if self.meanwhile:
            await self.meanwhile()
        return _json(self.on_request.pop(0))

    async def _show(self, _: Request) -> Response:
        return _json(self.on_request.pop(0))

    async def _lease(self, request: Request) -> Response:
        if self.lease_answer != 200:
            return Response(status_code=self.lease_answer)
        self.leases.append(f"taken {request.path_params['dump']}")
        return _json({"lease": "l1", "expires_in": self.lease_ttl})

    async def _renew(self, _: Request) -> Response:
        await self.renewals.put(None)
        return Response(status_code=self.renewal_answers.pop(0) if self.renewal_answers else 503)

    async def _release(self, request: Request) -> Response:
        self.leases.append(f"released {request.path_params['dump']}")
        return Response(status_code=204)

    async def _file(self, request: Request) -> Response:
        assert self.leases[-1] == f"taken {request.path_params['dump']}"
        self.ranges.append(request.headers["range"])
        self.downloaded.append(request.path_params["name"])
        return FileResponse(self.folder / request.path_params["dump"] / request.path_params["name"])


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


@asynccontextmanager
async def serving(dumps: DumpServer) -> AsyncIterator[str]:
    """Serve dumps over HTTP; yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=dumps.routes()), log_config=None, lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[bound]))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        server.should_exit = True
        await task


def read_with_spark(spark: SparkSession, path: str, query: str) -> list[Cells]:
    """Query a lake table, as `t`, with a session of its own; a row is column → value."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")  # as delta-rs has them
    open_table(session, path).read().createOrReplaceTempView("t")
    found = session.sql(query)
    instants = [name for name, kind in found.dtypes if kind == "timestamp"]
    rows = [row.asDict() for row in found.collect()]
    return [row | {name: row[name] and row[name].astimezone(UTC) for name in instants} for row in rows]


def read(path: str, query: str = "SELECT * FROM t") -> list[Cells]:
    """Query a lake table, as `t`, with delta-rs; a row is column → value."""
    batch = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    columns = [column.to_pylist() for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
