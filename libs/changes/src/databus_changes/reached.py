"""Up to where a binlog is translated, and what of that no Commit or Heartbeat has reported yet."""

from databus_binlog import Event as BinlogEvent
from databus_binlog import Flavor, Position
from databus_binlog import events as binlog
from databus_changes.executed import Executed
from databus_changes.place import Place
from databus_core.events import Commit, Heartbeat
from databus_core.progress import Progress


class Reached:
    """The translated part of a binlog. Arguments: as in `Translator`."""

    def __init__(self, flavor: Flavor, progress: Progress, start: Position | None, *, in_order: bool) -> None:
        self.executed = Executed(flavor, start.gtid_set if start else "")
        #: Up to where the binlog is translated. None until this is certain: if the binlog is requested by GTID, the
        #: server may skip what is before its first transaction.
        self.place: Place | None = (start.file, start.offset) if start and start.file and in_order else None
        #: file and offset for the next Heartbeat; None if there is no new position, or the next Commit reports it
        self._moved: Place | None = None
        #: ordinal in the last emitted Begin
        self.transaction = progress.transaction
        #: commit time of the last emitted Begin, or of a later transaction without captured changes, µs since the epoch
        self.time_us = progress.time_us

    def begin(self) -> int:
        """Return the ordinal of the next transaction to emit, whose Commit will report the position."""
        self._moved = None
        self.transaction += 1
        return self.transaction

    def commit(self, event: BinlogEvent, gtid: str, xid: int | None) -> Commit:
        """Return the Commit of the emitted transaction that `event` ends."""
        return Commit(self.executed.take(gtid), event.file, event.end, xid, event.start)

    def skip(self, event: BinlogEvent, gtid: str) -> None:
        """Keep the end of a group without a Commit for the next Commit or Heartbeat."""
        self.executed.add(gtid)
        self._moved = event.file, event.end

    def pass_groups(self, place: Place, time_us: int, transactions: int, *, reported: bool) -> None:
        """Take over groups that were emitted without `begin`, `commit` and `skip`, up to their end at `place`.

        `transactions`: how many have a Begin. `reported`: whether the last one has, so that its Commit reports its end.
        """
        self.transaction += transactions
        self.place, self.time_us = place, time_us
        self._moved = None if reported else place

    def move(self, event: binlog.Rotate | binlog.Heartbeat) -> None:
        """Take over the position of an event outside of groups."""
        if isinstance(event, binlog.Heartbeat):
            self.place = event.file, event.end
        elif not event.artificial:
            self._moved = event.next_file, event.position
            if self.place:
                self.place = self._moved

    def set_time(self, event: BinlogEvent, gtid: binlog.Gtid | None) -> None:
        """Take over a group's commit time.

        Servers that do not log it in microseconds write the GTID event when they commit; other events have the time
        when their statement began.
        """
        commit_time_us = gtid.commit_time_us if gtid else 0
        self.time_us = commit_time_us or (gtid or event).time * 1_000_000

    def take_heartbeat(self) -> Heartbeat | None:
        """Return the latest position that no Commit or Heartbeat has reported; None if there is no such position."""
        if self._moved is None:
            return None
        (file, end), self._moved = self._moved, None
        return Heartbeat(self.executed.take(), file, end, self.time_us)
