"""Write what happens by its routes: filtered, spread over partitions, with what stands around transactions."""

from collections.abc import Iterable

from msgspec.structs import replace

from databus.events import Begin, Commit, OversizedRow, QueryEvent, RowsEvent, Table
from databus_messages.formats.base import Change, DdlStatement, TransactionEnd
from databus_publisher.held import Held
from databus_publisher.messages import Message
from databus_publisher.outputs import Output
from databus_publisher.oversize import Outlet
from databus_publisher.routes import Route


class Writer:
    """Writes the transactions of one generation, one after the other."""

    def __init__(self, outlet: Outlet, outputs: Iterable[Output]) -> None:
        self._outlet = outlet
        self._framed = [output for output in outputs if output.emits_frames]
        self._beating = [output for output in outputs if output.emits_heartbeats]
        #: whether there is something to do at the end of a transaction
        self.ends = bool(self._framed or self._beating)
        self._held = Held()

    async def rows(self, route: Route, begin: Begin, event: RowsEvent) -> None:
        """Write what a route tells of an event, or hold it back until its transaction is whole."""
        if route.direct is not None:
            await self._outlet.change(route.output, route.direct, route.whole(begin, event))
            return
        for change in route.changes(begin, event):
            if route.output.waits:
                self._held.add(route, change, len(event.rows))
            else:
                await self._change(route, change)

    async def statement(self, route: Route, begin: Begin, event: QueryEvent, before: Table | None) -> None:
        """Write a statement to all partitions of its table, which was this one before as far as this generation saw."""
        statement = DdlStatement(route.table, begin, event.action, event.query, event.start, event.end, before)
        await self._outlet.statement(route.output, route.lanes, statement)

    async def unread(self, route: Route, begin: Begin, event: OversizedRow) -> None:
        """Tell of a row that was too large to be read."""
        place = (event.action, event.start, event.end, event.row, (event.row,))
        change = Change(route.table, begin, *place, ())
        await self._outlet.unread(Message(route.output, route.unknown, change), event.size)

    async def end(self, begin: Begin, commit: Commit) -> None:
        """End a transaction for all who tell of more than its changes."""
        ends = {output: TransactionEnd(commit.xid, commit.end, output.told) for output in self._framed}
        for route, change in self._held.release(begin):
            await self._change(route, replace(change, transaction_end=ends[route.output]))
        for output, end in ends.items():
            await self._close(output, begin, end)
        await self.passed(begin.time_us)

    async def passed(self, time_us: int) -> None:
        """Tell that all up to this time was passed on."""
        for output in self._beating:
            await self._outlet.frame(output, None, output.format.heartbeat(time_us))

    async def _change(self, route: Route, change: Change) -> None:
        for lane, part in route.spread(change):
            first = route.output.emits_frames and lane not in route.output.lanes
            if first and (opening := route.output.opening(lane, change.begin)):
                await self._outlet.frame(route.output, lane, opening)
            await self._outlet.change(route.output, lane, part)

    async def _close(self, output: Output, begin: Begin, end: TransactionEnd) -> None:
        """Write what stands behind a transaction's changes: in each lane that has some, and once in other topics."""
        if not output.lanes:
            return
        if records := list(output.format.end(begin, end)):
            await self._outlet.frame(output, None, [record for record in records if record.topic])
            for lane in output.lanes:
                await self._outlet.frame(output, lane, [record for record in records if not record.topic])
        output.close()
