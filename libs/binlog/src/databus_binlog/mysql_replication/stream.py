"""Runs the library's reader in a thread of its own. A LibraryStream is iterated over like an EventStream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.gtid import GtidSet

from databus_binlog.errors import (
    BinlogError,
    Disconnected,
    InvalidPosition,
    UnknownEvent,
    UnsupportedColumn,
    from_server,
)
from databus_binlog.events import AnyEvent, Events, Gtid, Rows, RowsQuery, encode_event
from databus_binlog.login import Login
from databus_binlog.mysql_replication.events import Converter
from databus_binlog.mysql_replication.gate import Gate
from databus_binlog.position import Position, Server
from databus_binlog.table_map import TableMap

_MAX_CONNECTIONS = 2  # the library opens one for the log and one for the server's settings
_PIECE_IMAGES = 1000  # row images after which a piece of a transaction is returned
_CONTINUED = (Gtid, RowsQuery, Rows)  # any other event may end a transaction, and `read` returns after it


def open_stream(
    login: Login,
    server: Server,
    position: Position,
    *,
    collations: Mapping[int, str],
    wanted: Callable[[str, str], bool] | None,
    describe: Callable[[TableMap], TableMap] | None,
    statements: bool,
    row_limit: int | None,
    **options: Any,
) -> LibraryStream:
    """Stream the log from a position, as `Session.dump` does. `options` are those of Reader."""

    def make_converter(connection: Any) -> Converter:
        checksum = server.variables.get("binlog_checksum", "NONE") != "NONE"
        gate = Gate(
            connection,
            flavor=server.flavor,
            checksum=checksum,
            collations=collations,
            wanted=wanted,
            statements=statements,
            row_limit=row_limit,
        )
        return Converter(gate, describe)

    return LibraryStream(Reader(login, server, position, make_converter=make_converter, **options))


class LibraryStream:
    """An asynchronous iterator of Events. Events are read on demand, so memory is bounded."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, "mysql-replication")
        self._piece: asyncio.Future[Events | None] | None = None
        self._closed = False

    @property
    def drained(self) -> bool:
        """As in EventStream; always true, because no events are read ahead."""
        return True

    def __aiter__(self) -> LibraryStream:
        return self

    async def __anext__(self) -> Events:
        if self._piece is None:
            if self._closed:
                raise StopAsyncIteration
            self._piece = asyncio.get_running_loop().run_in_executor(self._thread, self._reader.read)
        await asyncio.wait([self._piece])  # after a cancellation the next call returns the piece
        events, self._piece = self._piece.result(), None
        if events:
            return events
        if self._reader.failure and not self._closed:
            raise self._reader.failure
        raise StopAsyncIteration

    async def close(self) -> None:
        """Disconnect. Iteration ends after the events that have arrived."""
        if not self._closed:
            self._closed = True
            self._reader.hang_up()
            await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.close)
            self._thread.shutdown(wait=False)


class Reader:
    """Reads with the library, in blocking calls.

    make_converter: called with the library's connection to the log; returns a Converter whose gate wraps this
    connection. The other parameters are the session's and those of `Session.dump`.
    """

    def __init__(
        self,
        login: Login,
        server: Server,
        position: Position,
        *,
        make_converter: Callable[[Any], Converter],
        server_id: int,
        heartbeat: float,
        silence: float,
        write_timeout: int,
        follow: bool,
    ) -> None:
        by_gtid = bool(position.gtid_set) and server.gtid
        if by_gtid and server.flavor == "mysql":
            _require_readable(position.gtid_set)
        self.failure: BinlogError | None = None
        self._finished = False
        self._user = login.user
        self._make_converter = make_converter
        self._converter: Converter | None = None
        self._connections = 0
        self._library = BinLogStreamReader(
            {
                "host": login.host,
                "port": login.port,
                "user": login.user,
                "password": login.password.encode(),  # pymysql would encode it as Latin-1
                "connect_timeout": login.connect_timeout,
                "read_timeout": silence,
                "ssl": login.tls.context() if login.tls else None,
                "init_command": f"SET SESSION net_write_timeout = {write_timeout}",
            },
            server_id,
            pymysql_wrapper=self._connect,
            slave_uuid=str(UUID(int=server_id)),
            slave_heartbeat=heartbeat,
            blocking=follow,
            auto_position=position.gtid_set if by_gtid else None,
            is_mariadb=by_gtid and server.flavor == "mariadb",  # if true, the library ignores log_file
            log_file=position.file,
            log_pos=max(position.offset, 4),
            resume_stream=True,
            filter_non_implemented_events=False,
            enable_logging=False,
        )

    def read(self) -> Events | None:
        """Read a transaction, or a piece of one. Return None at the end of the log, and after a `failure`."""
        found: list[AnyEvent] = []
        tables: dict[str, TableMap] = {}
        images = 0
        try:
            while not self._finished and images < _PIECE_IMAGES and (not found or isinstance(found[-1], _CONTINUED)):
                if (event := self._next()) is None:
                    continue
                found.append(event)
                if isinstance(event, Rows) and self._converter:
                    images += event.count
                    tables[event.table] = self._converter.table
        except BinlogError as failure:
            self._finished = True
            self.failure = failure
        return Events(encode_event(found), len(found), images, tables) if found else None

    def hang_up(self) -> None:
        """End a `read` that another thread is waiting in."""
        self._connections = _MAX_CONNECTIONS  # the library can't connect any more
        if self._converter:
            self._converter.gate.hang_up()

    def close(self) -> None:
        """Close the connections."""
        self._library.close()

    def _connect(self, db: str | None = None, **settings: Any) -> Any:
        """Open a connection for the library, which reads the log on the first one.

        Raises Disconnected if the library connects again after a loss: the library would restart a dump by GTID at the
        set that the dump began with.
        """
        self._connections += 1
        if self._connections > _MAX_CONNECTIONS:
            raise Disconnected("connection to the server lost")
        connection = pymysql.connect(database=db, **settings)
        if self._converter:
            return connection
        self._converter = self._make_converter(connection)
        return self._converter.gate

    def _next(self) -> AnyEvent | None:
        """Return the next event; None for a table map, and at the end of the log."""
        try:
            event = self._library.fetchone()
            if event is not None and self._converter:
                return self._converter.convert(event)
        except BinlogError:
            raise
        except Exception as error:
            raise self._translate(error) from error
        self._finished = True
        return None

    def _translate(self, error: Exception) -> BinlogError:
        """Return our error for any exception that the library raises."""
        if isinstance(error, pymysql.MySQLError):
            code, text = error.args if len(error.args) == 2 else (0, error)
            return from_server(code, str(text), user=self._user)
        what = f"mysql-replication fails with {type(error).__name__}; choose the engine native"
        if self._converter and self._converter.gate.in_table:
            gate = self._converter.gate
            return UnsupportedColumn(f"table {gate.table.full_name} at {gate.where}: {what}")
        return UnknownEvent(f"event at {self._converter.gate.where}: {what}" if self._converter else what)


def _require_readable(gtid_set: str) -> None:
    try:
        GtidSet(gtid_set)
    except Exception as error:  # the library raises plain Exception
        text = f"mysql-replication can't read the GTID set {gtid_set[:200]!r}; choose the engine native"
        raise InvalidPosition(text) from error
