"""A connection to a server: reads the server's description, positions in its log, and the log itself.

asyncmy logs in and runs the queries. `Session.dump` with the native engine then takes over asyncmy's transport. asyncmy
is installed with `databus-binlog[connect]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from asyncmy.cursors import Cursor, DictCursor
from asyncmy.errors import Error as DriverError

from databus_binlog import commands
from databus_binlog.decoder import Decoder
from databus_binlog.description import SHOW_VARIABLES, described
from databus_binlog.driver import log_in, send, take_over, translate
from databus_binlog.engines import Engine, library
from databus_binlog.errors import (
    Disconnected,
    EngineUnavailable,
    InvalidPosition,
    ServerRefused,
    ServerUnavailable,
    from_server,
)
from databus_binlog.gtid import MySqlGtidSet
from databus_binlog.login import Login
from databus_binlog.position import Position, Server, release
from databus_binlog.row_batch import Conversion, RowBatch
from databus_binlog.select import SelectStream, close_select, open_select
from databus_binlog.stream import EventStream
from databus_binlog.table_map import TableMap

if TYPE_CHECKING:  # at run time this engine is imported only if it is chosen
    from databus_binlog.mysql_replication import LibraryStream

#: what `Session.dump` returns, by engine
Stream: TypeAlias = "EventStream | LibraryStream"
Row = tuple[Any, ...]

_MAX_OFFSET = 0xFFFFFFFF  # COM_BINLOG_DUMP has four bytes for the offset
_BATCH = 1 << 16  # bytes of packed rows after which a batch of a SELECT is complete
_FIRST_EVENT = 4  # offset of a file's first event, after the magic number
_STATUS_GRANT = "REPLICATION CLIENT"
_EVENTS_GRANT = "REPLICATION SLAVE, REPLICATION CLIENT"


@asynccontextmanager
async def connect(login: Login) -> AsyncIterator[Session]:
    """Log in and read the server's variables; disconnect at the end of the block."""
    session = Session(await log_in(login), login)
    try:
        await session.read_server()
        yield session
    finally:
        await session.close()


class Session:
    """A logged-in connection; `connect()` makes it. After `dump`, queries need another session."""

    server: Server

    def __init__(self, connection: Any, login: Login) -> None:
        self._connection = connection
        self._login = login
        self._stream: Stream | SelectStream | None = None

    async def close(self) -> None:
        """Disconnect."""
        if self._stream:
            await self._stream.close()
        if isinstance(self._stream, EventStream):  # the stream owned the connection, and has closed it
            return
        try:
            await self._connection.ensure_closed()
        except (DriverError, OSError):
            self._connection.close()

    async def read_server(self) -> None:
        """Read the server's version and variables into `server`."""
        self.server = described(await self.query(SHOW_VARIABLES))

    async def query(self, sql: str, args: Sequence[object] = (), *, grant: str = "SELECT") -> list[Row]:
        """Run one statement and return its rows. `grant` names the privilege it needs, for the error message."""
        return await self._run(Cursor, sql, args, grant)

    async def _run(self, cursor_type: type[Cursor], sql: str, args: Sequence[object], grant: str) -> list[Any]:
        self._require_free()
        try:
            async with self._query_timeout(), self._connection.cursor(cursor_type) as cursor:
                await cursor.execute(sql, args or None)
                return list(await cursor.fetchall())
        except (DriverError, OSError) as error:
            raise translate(error, self._login.user, grant) from error

    async def select(
        self, sql: str, conversions: Sequence[Conversion] = (), *, batch: int = _BATCH
    ) -> AsyncGenerator[RowBatch, None]:
        """Run a SELECT and yield its rows, as the server prints them, in batches of about `batch` bytes.

        conversions: one for each column; empty: all values stay as they are. The server waits while the consumer is
        behind. The session can be used again after the last batch; a generator that is closed before disconnects. Use
        `contextlib.aclosing`. Raises Disconnected also if the server sends nothing for `query_timeout` seconds,
        TableChanged, and CorruptResult.
        """
        self._require_free()
        refused = partial(from_server, user=self._login.user, grant="SELECT")
        try:
            stream = open_select(
                self._connection, sql, conversions, batch=batch, refused=refused, silence=self._login.query_timeout
            )
        except DriverError as error:
            raise translate(error, self._login.user) from error
        self._stream = stream
        try:
            async for rows in stream:
                yield rows
        finally:
            self._stream = None
            await close_select(self._connection, stream)

    def _require_free(self) -> None:
        if self._stream:
            raise Disconnected("this session streams the log or rows; open another session for queries")

    @asynccontextmanager
    async def _query_timeout(self) -> AsyncIterator[None]:
        """Limit the wait for an answer: a host that has vanished sends none, not even a TCP reset."""
        limit = self._login.query_timeout
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError as error:
            self._connection.close()
            raise ServerUnavailable(f"no answer from {self._login.host} within {limit:g} s") from error

    async def replica_lag(self) -> float:
        """Return how many seconds the server is behind its sources; 0 if it is no replica, or does not replicate."""
        mysql = self.server.flavor == "mysql"
        sql = "SHOW REPLICA STATUS" if mysql and release(self.server.version) >= (8, 0, 22) else "SHOW SLAVE STATUS"
        rows = await self._run(DictCursor, sql if mysql else "SHOW ALL SLAVES STATUS", (), _STATUS_GRANT)
        names = ("Seconds_Behind_Source", "Seconds_Behind_Master")
        return max((float(row[name]) for row in rows for name in names if row.get(name) is not None), default=0.0)

    # --- positions ------------------------------------------------------------------------------------------------

    async def current_position(self) -> Position:
        """Return the position of the log's end, with a GTID set unless gtid_mode lets MySQL log anonymous transactions.

        Resume from the GTID set, if there is one. MySQL's set lacks the transactions before the offset that are not yet
        committed; a dump from the file and offset would skip them.
        """
        mysql = self.server.flavor == "mysql"
        rows = await self.log_status()
        if not rows:
            raise InvalidPosition("the server writes no binary log; start it with log_bin and binlog_format=ROW")
        file, offset = str(rows[0][0]), int(rows[0][1])
        if not self.server.gtid:
            return Position(file=file, offset=offset)
        gtid_set = str(rows[0][4]).replace("\n", "") if mysql else await self.gtid_at(file, offset)
        return Position(gtid_set=gtid_set, file=file, offset=offset)

    async def log_status(self) -> list[Row]:
        """Return the row that describes the log's end; no row if the log is off. Needs REPLICATION CLIENT."""
        new_name = self.server.flavor == "mysql" and release(self.server.version) >= (8, 2)
        return await self.query("SHOW BINARY LOG STATUS" if new_name else "SHOW MASTER STATUS", grant=_STATUS_GRANT)

    async def earliest_position(self) -> Position:
        """Return the start of the oldest file of the log."""
        file = next(iter(await self.logs()))
        if self.server.flavor == "mariadb":
            return Position(gtid_set=await self.gtid_at(file, _FIRST_EVENT), file=file, offset=_FIRST_EVENT)
        if not self.server.gtid:
            return Position(file=file, offset=_FIRST_EVENT)
        [(purged,)] = await self.query("SELECT @@GLOBAL.gtid_purged")
        return Position(gtid_set=str(purged).replace("\n", ""), file=file, offset=_FIRST_EVENT)

    async def logs(self) -> dict[str, int]:
        """Return the size of each file of the log, the oldest first."""
        rows = await self.query("SHOW BINARY LOGS", grant=_STATUS_GRANT)
        return {str(file): int(size) for file, size, *_ in rows}

    async def event_at(self, file: str, offset: int) -> tuple[str, str] | None:
        """Return type and description of the event at an offset; None at the file's end.

        Raises InvalidPosition if the server has no such file, or no event starts at the offset.
        """
        return await self._listed_event(file, max(offset, _FIRST_EVENT))

    async def gtids_before(self, file: str) -> str:
        """Return the GTID set executed before a file of the log."""
        if self.server.flavor == "mariadb":
            return await self.gtid_at(file, _FIRST_EVENT)
        kind, text = await self._listed_event(file, _FIRST_EVENT, skip=1) or ("", "")
        return text.replace("\n", "") if kind == "Previous_gtids" else ""

    async def _listed_event(self, file: str, offset: int, *, skip: int = 0) -> tuple[str, str] | None:
        """Return type and description of the event at an offset, or of the event that is `skip` events after it."""
        sql = f"SHOW BINLOG EVENTS IN %s FROM {offset} LIMIT {skip}, 1"
        try:
            rows = await self.query(sql, (file,), grant=_EVENTS_GRANT)
        except ServerRefused as error:
            raise InvalidPosition(f"no event starts at {file}:{offset}: {error}") from error
        return (str(rows[0][2]), str(rows[0][5])) if rows else None

    async def gtid_at(self, file: str, offset: int) -> str:
        """Return the GTID set executed before an event of MariaDB's log."""
        [(gtid,)] = await self.query("SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
        if gtid is None:
            raise InvalidPosition(f"the server has no GTID position for {file}:{offset}; the file may have been purged")
        return gtid.decode() if isinstance(gtid, bytes) else str(gtid)

    async def collations(self) -> dict[int, str]:
        """Return the character set of each collation, by the collation's number."""
        table = "COLLATIONS"
        if self.server.flavor == "mariadb" and release(self.server.version) >= (10, 10):
            table = "COLLATION_CHARACTER_SET_APPLICABILITY"  # only this table has the numbers of the UCA 14 collations
        rows = await self.query(f"SELECT ID, CHARACTER_SET_NAME FROM information_schema.{table}")  # noqa: S608
        return {int(number): str(name) for number, name in rows if number is not None and name is not None}

    async def engine_faults(self, engine: Engine, wanted: Callable[[str, str], bool] | None = None) -> list[str]:
        """List the server's settings, and the columns of wanted tables, that keep an engine from reading the log.

        One line for each cause; none for the native engine. Raises EngineUnavailable if the engine is not installed.
        """
        if engine == "native":
            return []
        faults: list[str] = await library().faults(self.server.variables, self.query, wanted)
        return faults

    # --- the log --------------------------------------------------------------------------------------------------

    async def register(self, server_id: int) -> None:
        """Register as a replica, so that SHOW REPLICAS lists this client. Needs the REPLICATION SLAVE privilege."""
        payload = commands.register(server_id, "databus", self._login.user, 0)
        try:
            send(self._connection, payload)
            async with self._query_timeout():
                await self._connection.read_packet()
        except (DriverError, OSError) as error:
            # If the account lacks the privilege, MariaDB answers with the code of a refused login.
            code = 1227 if error.args[:1] == (1045,) else None
            raise translate(error, self._login.user, code=code) from error

    async def dump(
        self,
        position: Position,
        *,
        server_id: int,
        heartbeat: float = 1.0,
        silence: float = 30.0,
        wanted: Callable[[str, str], bool] | None = None,
        describe: Callable[[TableMap], TableMap] | None = None,
        follow: bool = True,
        backlog: int = 8 << 20,
        write_timeout: int = 600,
        statements: bool = False,
        semi_sync: bool = False,
        row_limit: int | None = None,
        engine: Engine = "native",
    ) -> Stream:
        """Stream the log from a position; without `follow`, up to its current end.

        server_id: unique among all replicas of the server. heartbeat: seconds without an event after which the server
        sends a Heartbeat. write_timeout: seconds the server waits for a consumer that does not read. statements: let
        MariaDB also send the statements that changed the rows (RowsQuery), which may double the traffic. semi_sync: if
        semi-synchronous replication is enabled on the server, its commits wait until their events are decoded here.
        engine: mysql-replication uses no backlog, and does not read everything that a server may log (see
        engine_faults). The other parameters: see Decoder and EventStream.
        """
        semi_sync = semi_sync and self.server.semi_sync
        collations = await self.collations()
        by_gtid = bool(position.gtid_set) and self.server.gtid
        if not by_gtid:
            _require_file(position)
        if engine == "mysql-replication":
            if semi_sync:
                raise EngineUnavailable(
                    "mysql-replication can't acknowledge events; turn semi_sync off, or choose the engine native"
                )
            stream: Stream = library().open_stream(
                self._login,
                self.server,
                position,
                server_id=server_id,
                heartbeat=heartbeat,
                silence=silence,
                write_timeout=write_timeout,
                follow=follow,
                statements=statements,
                collations=collations,
                wanted=wanted,
                describe=describe,
                row_limit=row_limit,
            )
            self._stream = stream
            return stream
        await self._prepare(server_id, heartbeat, write_timeout, position.gtid_set if by_gtid else "", semi_sync)
        flags = 0 if follow else commands.NON_BLOCK
        if statements and self.server.flavor == "mariadb":
            flags |= commands.ANNOTATE
        payload = self._dump_command(position, server_id, by_gtid, flags)
        decoder = Decoder(
            flavor=self.server.flavor,
            wanted=wanted,
            collations=collations,
            describe=describe,
            by_statement=describe is not None,
            semi_sync=semi_sync,
            row_limit=row_limit,
        )
        make_stream = partial(EventStream, decoder=decoder, backlog=backlog, silence=silence)
        self._stream = take_over(self._connection, make_stream)
        try:
            send(self._connection, payload)
        except DriverError as error:
            raise translate(error, self._login.user) from error
        return self._stream

    async def _prepare(
        self, server_id: int, heartbeat: float, write_timeout: int, gtid_set: str, semi_sync: bool
    ) -> None:
        """Describe this replica in session variables, under their old and new names: a server reads those it knows."""
        nanoseconds = int(heartbeat * 1e9)
        await self.query(
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum,"
            " @source_binlog_checksum = @@GLOBAL.binlog_checksum,"
            " @master_heartbeat_period = %s, @source_heartbeat_period = %s, SESSION net_write_timeout = %s",
            (nanoseconds, nanoseconds, write_timeout),
        )
        if semi_sync:
            await self.query("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")
        if self.server.flavor == "mysql":
            # A server ends an older dump of the same replica, which MySQL knows by this UUID and MariaDB by server_id.
            uuid = str(UUID(int=server_id))
            await self.query("SET @slave_uuid = %s, @replica_uuid = %s", (uuid, uuid))
            return
        await self.query("SET @mariadb_slave_capability = 4, @slave_gtid_strict_mode = 1")
        if gtid_set:
            await self.query("SET @slave_connect_state = %s", (gtid_set,))

    def _dump_command(self, position: Position, server_id: int, by_gtid: bool, flags: int) -> bytes:
        if by_gtid and self.server.flavor == "mysql":
            return commands.dump_gtid(MySqlGtidSet.from_text(position.gtid_set).to_bytes(), server_id, flags)
        if by_gtid:
            return commands.dump("", _FIRST_EVENT, server_id, flags)
        return commands.dump(position.file, max(position.offset, _FIRST_EVENT), server_id, flags)


def _require_file(position: Position) -> None:
    """Raise InvalidPosition if a dump can't start at the position's file and offset."""
    if position.gtid_set and not position.file:
        raise InvalidPosition("the server logs no GTIDs (gtid_mode is not ON); start from a file and offset")
    if position.offset > _MAX_OFFSET:
        raise InvalidPosition(f"{position.file}:{position.offset} is beyond 4 GiB; start from a GTID set")
