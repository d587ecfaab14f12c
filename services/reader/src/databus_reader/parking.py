"""Parks tables that are in doubt: their changes are left out until they are loaded again. All other tables flow on.

Usually a doubt concerns known tables, and is recorded in its own transaction. If the outcome of a whole transaction is
in doubt, some of its rows may have been sent already. Then the generation ends, and the next one leaves out the
transaction and parks its tables.

A transaction that an operator wants to skip is not left out: the publisher makes dead letters of its rows.
"""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NoReturn

from msgspec.structs import replace

from databus_changes.captured import require_select
from databus_changes.catalog import read_names
from databus_changes.doubts import CONCERN_ALL, Doubt, Reason
from databus_changes.narrowing import narrowed
from databus_changes.place import Place, reached
from databus_changes.tables import Rename, TableName
from databus_core.errors import FatalError, GenerationLost, SourceNotReady, UnknownTable
from databus_core.events import Event, first_names, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.skips import Skip
from databus_core.source_connection import connect_source
from databus_core.table_states import Backfill, TableDoubt, TableStates
from databus_reader.backfill.pauses import Pauses
from databus_reader.backfill.redefined_tables import follow_renames, start_over
from databus_reader.backfill.reports import Reports
from databus_reader.backfill.states import BackfillStates
from databus_reader.backfill.whole_loads import WholeLoads
from databus_reader.baseline import Baseline

log = get_logger(__name__)


class Parking:
    """Decides what is left out of the stream. It is used by one generation after the other."""

    def __init__(self, settings: Settings, baseline: Baseline, health: Health) -> None:
        self._settings = settings
        self._baseline = baseline
        self._health = health
        self._states = BackfillStates(TableStates())
        self._host = self._server = ""
        self._look: Callable[[], None] = lambda: None
        #: doubts whose tables are not parked yet
        self._reported: list[Doubt] = []
        #: the request to skip the open group
        self._skip: Skip | None = None
        #: the open group
        self._group = ("", "", 0)
        #: host and place of the open group's first event, and whether rows or DDL of it may have been sent
        self._opened, self._has_begun = ("", "", 0), False
        #: host and place of a group's first event → the error that stops the reader before it
        self._stops: dict[tuple[str, str, int], FatalError] = {}
        #: host and place of a group → the doubt about its outcome
        self._verdicts: dict[tuple[str, str, int], Doubt] = {}
        #: which tables the publisher has reported
        self.reports = Reports()
        #: how long tables wait that have to be loaded again and again
        self.pauses = Pauses()
        #: which loads took too long
        self.whole_loads = WholeLoads(settings)

    def begin_generation(self, host: str, server: str, states: BackfillStates) -> None:
        """Continue with the states in Kafka. `server` is the host's identity."""
        self._host, self._server, self._states, self._look = host, server, states, lambda: None
        self._reported, self._skip, self._has_begun = [], None, False
        self._show()

    def follow(self, look: Callable[[], None]) -> None:
        """Call `look` from now on when a backfill was added to the states."""
        self._look = look

    # --- called before the first event of a generation ------------------------------------------------------------

    def excluded(self) -> list[Event]:
        """End doubts about and backfills of tables that are not captured any more."""
        why = "it is not captured any more"
        tables = [table for table in self._states.doubts if not self.captures(table)]
        return [event for table in tables for event in self._forget(table, why)]

    def take_over(self) -> list[Event]:
        """Park the tables that the publisher has reported.

        A report is the last thing in its generation. So at the start of the next one, the table still has this name.
        """
        events: list[Event] = []
        for table, doubt in [*self._states.doubts.items()]:
            if doubt.reported:
                self.reports.add(table, doubt.reason)
                # The same load may fail at the same place again and again, and is a cause of its own each time.
                cause = doubt.file, doubt.since_us
                events += self._park_table(table, doubt.reason, doubt.text, (doubt.file, doubt.offset), repeated=cause)
        return events

    def park_all(self, tables: Iterable[TableName], text: str, place: Place) -> list[Event]:
        """Park tables because the pipeline starts anew. Return the events that record it.

        In a binlog that was reset, a position may be that of another transaction. So no request to skip one is left,
        and no decision about one.
        """
        self._stops.clear()
        self._verdicts.clear()
        parked = [event for table in tables for event in self._park_table(table, "new_start", text, place)]
        return [*parked, *(self._states.end_skip(each) for each in self._states.skips)]

    # --- called by the translation --------------------------------------------------------------------------------

    def open(self, gtid: str, place: Place) -> bool:
        """Open a group. Return whether it is to be skipped: then its doubts wait for `end_skip`.

        Raises the error that stops the reader before this group.
        """
        self._opened, self._has_begun = (self._host, *place), False
        self._skip = self._states.skip_of(gtid, self._server, place)
        if self._skip is None and (error := self._stops.get(self._opened)):
            raise error
        return self._skip is not None

    def may_concern(self, place: Place | None) -> bool:
        """Return whether a group at or after a place (None: at any) may be skipped, left out or a reason to stop."""
        if self._states.skips or self._reported:
            return True
        decided = (*self._stops, *self._verdicts)  # nearly always empty
        return any(host == self._host and (place is None or reached((file, at), place)) for host, file, at in decided)

    async def end_skip(self) -> list[Event]:
        """Park the tables of the group that is skipped. Return the events that record it and delete the request."""
        skip, self._skip = self._skip, None
        events = await self.park()
        if skip:
            text = f"transaction {skip.transaction} is skipped: its rows become dead letters"
            log.warning(LogEvent.TRANSACTION_SKIPPED, text, position=f"{skip.file}:{skip.offset}", gtid=skip.gtid)
            events.append(self._states.end_skip(skip))
        return events

    def report(self, doubt: Doubt) -> None:
        """Take note of a doubt.

        Raises GenerationLost if a part of the group may have been sent already: the next generation leaves its rows
        out, or stops before it.
        Raises the doubt's error if the reader has to stop, or may find the table in information_schema.
        """
        error = doubt.error
        if isinstance(error, UnknownTable) and not self._baseline.has_read(error):
            raise error
        if self._skip:
            self._reported.append(dataclasses.replace(doubt, reason=Reason.SKIPPED))
            return
        if self._settings.doubt.on_doubt == "stop" or doubt.reason in CONCERN_ALL:
            self._stop(doubt)
        if doubt.whole_transaction:
            self._verdicts[self._group] = doubt
            raise GenerationLost(f"{doubt.text}: the next generation leaves the transaction out")
        self._reported.append(doubt)

    def begin(self, place: Place) -> Doubt | None:
        """Begin the group at a place. Return the doubt about its outcome; then all its rows are left out."""
        self._group, self._has_begun = (self._host, *place), True
        if doubt := self._verdicts.get(self._group):
            self._reported.append(doubt)
        return doubt

    def leaves_out(self, table: TableName) -> bool:
        """Return whether the rows of a table are left out."""
        doubt = self._states.doubts.get(table)
        return doubt is not None and doubt.state == "parked"

    def captures(self, table: TableName) -> bool:
        """Return whether a table is captured."""
        return self._settings.source.captures(*table)

    async def park(self) -> list[Event]:
        """Park the tables of the doubts that were reported since the last call. Return the events that record it."""
        if not self._reported or self._skip:
            return []
        reported, self._reported = self._reported, []
        events: list[Event] = []
        for doubt in reported:
            for table in sorted(await self._tables_of(doubt)):
                if self.captures(table) and not self._is_parked(table):
                    reason, position = doubt.reason.name.lower(), (doubt.file, doubt.offset)
                    events += self._park_table(table, reason, doubt.text, position, cause=doubt.advice)
        return events

    def dropped(self, table: TableName) -> list[Event]:
        """End the doubt about a table that was dropped, and its backfills."""
        return self._forget(table, "the table was dropped")

    def renamed(self, renames: Sequence[Rename]) -> list[Event]:
        """Let doubts and backfills follow the tables that one statement renames."""
        self.reports.renamed(renames)
        records = follow_renames(self._states, renames, self._settings.source.captures)
        if records:
            self._look()
            self._show()
        return [*records]

    def columns_removed(self, table: TableName, columns: Collection[str]) -> list[Event]:
        """Start backfills over whose key has one of these columns: it may have been added again, with other values."""
        return [*start_over(self._states, table, columns)]

    # --- called by backfills --------------------------------------------------------------------------------------

    def fill(self, table: TableName, backfill: str) -> list[Event]:
        """Publish the changes of a parked table from now on: it was emptied for consumers, and is being loaded."""
        doubt = self._states.doubts.get(table)
        return [] if doubt is None else self._set(table, replace(doubt, state="filling", backfill=backfill))

    def end(self, table: TableName, why: str = "it is loaded again") -> list[Event]:
        """End the doubt about a table, if there is one."""
        self.reports.remove(table)
        if table not in self._states.doubts:
            return []
        text = f"{full_name(*table)} is no longer in doubt: {why}"
        log.info(LogEvent.TABLE_HEALED, text, table=full_name(*table))
        return self._set(table, None)

    def park_incomplete(self, backfill: Backfill, place: Place, *, emptied: bool) -> list[Event]:
        """Park a table whose backfill was cancelled or has failed, and without it consumers lack rows.

        `emptied`: consumers have emptied it. Otherwise they have the rows of before a reset of the pipeline.
        """
        done = f"has emptied {backfill.full_name} for consumers" if emptied else "was to load it after a reset"
        text = f"backfill {backfill.id} {done}, and ended before it was loaded"
        return self._park_table(backfill.name, "incomplete_backfill", text, place, heals=False)

    # ---------------------------------------------------------------------------------------------------------------

    def _forget(self, table: TableName, why: str) -> list[Event]:
        """End the doubt about a table that is gone, and its backfills."""
        records = self._states.give_up(table, why)
        if records:
            self._look()
        return [*records, *self.end(table, why)]

    def _stop(self, doubt: Doubt) -> NoReturn:
        """Stop before the open group: what precedes it is published.

        A Kafka transaction that contains a part of the group is never committed, with all that precedes the group in
        it. So the next generation stops, before it sends anything of the group.
        """
        if self._has_begun and self._opened not in self._stops:
            self._stops[self._opened] = doubt.error
            raise GenerationLost(f"{doubt.text}: the next generation stops before the transaction")
        raise doubt.error

    def _is_parked(self, table: TableName) -> bool:
        """Return whether a further doubt about a table changes nothing: it is parked, and its load has not failed."""
        failed = self._settings.doubt.heal == "auto" and not self._states.will_be_loaded(table)
        return self.leaves_out(table) and not failed

    async def _tables_of(self, doubt: Doubt) -> Iterable[TableName]:
        """Return the tables in doubt: all, if the server does not show which ones a statement has changed.

        Raises SourceNotReady if none is captured as far as the account sees, and it may not see all.
        """
        if doubt.targets:
            async with connect_source(self._settings.source, self._host) as session:
                found = await narrowed(doubt, session, self._settings.source)
            if found is not doubt:
                return found.tables
        if doubt.tables:
            return doubt.tables
        listed = {*await self._captured(), *doubt.targets}
        if not any(self._settings.source.captures(*each) for each in listed):
            await self._require_select(doubt)
        return listed

    async def _require_select(self, doubt: Doubt) -> None:
        """Raise SourceNotReady if the account may not read captured tables. A server hides such tables from it."""
        try:
            async with connect_source(self._settings.source, self._host) as session:
                await require_select(session, self._settings.source, [], self._host)
        except SourceNotReady as error:
            text = f"{doubt.text}: which captured tables this concerns is not known: {error}"
            raise SourceNotReady(text) from error

    async def _captured(self) -> list[TableName]:
        async with connect_source(self._settings.source, self._host) as session:
            return await read_names(session)

    def _park_table(
        self,
        table: TableName,
        reason: str,
        text: str,
        place: Place,
        *,
        cause: str = "",
        heals: bool = True,
        repeated: Place | None = None,
    ) -> list[Event]:
        """Park a table, and load it again if the settings say so and `heals`. Return the events that record it.

        `cause`: what to do about the cause. `repeated`: as `cause` of `Pauses.next_us`; the place by default.
        """
        now = time.time_ns() // 1000
        name, backfill = full_name(*table), ""
        advice = f"to load it again, run `databus backfill start {name} --clean`"
        events: list[Event] = [*self._states.give_up(table, "the table is in doubt: it has to be loaded again")]
        if heals and self._settings.doubt.heal == "auto":
            pause = self.pauses.next_us(table, repeated or place, now)
            if repeated and pause:
                self.reports.postpone(table, now + pause)
            backfill, records = self._states.load_again(table, now + pause)
            events += records
            advice = "it will be loaded again"
        self._look()
        position = f"{place[0]}:{place[1]}"
        parked = "; ".join(filter(None, (f"{name} is parked: {text}", cause, advice)))
        log.error(LogEvent.TABLE_PARKED, parked, table=name, position=position)
        file, offset = place
        doubt = TableDoubt(
            state="parked", reason=reason, text=text, file=file, offset=offset, since_us=now, backfill=backfill
        )
        return [*events, *self._set(table, doubt)]

    def _set(self, table: TableName, doubt: TableDoubt | None) -> list[Event]:
        record = self._states.set_doubt(table, doubt)
        self._show()
        return [record]

    def _show(self) -> None:
        """Show the tables in doubt in the metrics and in the text of the readiness."""
        metrics.TABLES_IN_DOUBT.clear()
        for table, doubt in self._states.doubts.items():
            metrics.TABLES_IN_DOUBT.labels(full_name(*table), doubt.state).set(1)
        shown = [f"{full_name(*table)} is {doubt.state}" for table, doubt in sorted(self._states.doubts.items())]
        self._health.degraded = first_names(shown)
