"""The rows of a prepared XA transaction are found although another host has other transactions before it."""

import msgspec

from common.connections import connected, session_on
from databus_binlog import Position, Query
from databus_changes.ddl.dialect import dialect_of
from databus_changes.tracker import TableTracker
from databus_core.kafka_history import SchemaHistory
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_reader.earlier_transactions import EarlierTransactions
from databus_reader.source.hosts import SourceConnection
from devstack import Server
from devstack.replication import run


async def test_transactions_that_another_host_has_before_it_are_skipped(source: Server, schema: str) -> None:
    host = f"{source.host}:{source.port}"
    login = {"hosts": [host], "user": source.user, "password": source.password, "include": [f"{schema}.*"]}
    settings = Settings.model_validate({"name": schema, "source": login})
    await run(source, f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    async with session_on(source) as session, connected(source) as other, connected(source) as execute:
        earlier = await session.current_position()
        await run(source, f"INSERT INTO {schema}.t VALUES (1)")
        for session_of, name, row in ((other, "other", 2), (execute, schema, 3)):
            insert = f"INSERT INTO {schema}.t VALUES ({row})"
            for statement in (f"XA START '{name}'", insert, f"XA END '{name}'", f"XA PREPARE '{name}'"):
                await session_of(statement)
        end = await session.current_position()
        tracker = TableTracker(SchemaHistory(), await dialect_of(session), lookup=None, tracks=schema.__eq__)
        log = EarlierTransactions(settings, SourceConnection(host, session, end, True, True), tracker, Health())
        xid = f"X'{schema.encode().hex()}',X'',1"
        commit = Query(0, 1, end.file, end.offset, end.offset, schema, b"", 0, 0, None)
        found = (await log.search(xid, commit))[xid]
        assert found is not None
        moved = msgspec.structs.replace(found, position=Position(earlier.gtid_set), in_order=False)
        held = [await log.read(place) for place in (found, moved)]
        await execute(f"XA ROLLBACK '{schema}'")
        await other("XA ROLLBACK 'other'")
    for each in held:
        [table] = each.tables.values()
        [rows] = each.release({table.fingerprint: table})
        assert msgspec.msgpack.decode(rows.rows) == [[b"3"]]
