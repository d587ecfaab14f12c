"""Translate binlogs to changes with the reader's own code, but without a server to query and without progress."""

from collections.abc import Iterable, Iterator, Mapping

from databus_binlog import AnyEvent, FormatDescription, Gtid, TableMap, XaPrepare, Xid
from databus_changes.doubts import Doubt, Reason
from databus_changes.tables import CapturedTables
from databus_changes.translate import Translator
from databus_cli.binlog.definitions import Definitions, flavor_of, result
from databus_cli.binlog.transactions import CompleteTransactions, NumberedTransactions
from databus_core.events import Decided, Event, Prepared, TableDefinition
from databus_core.progress import Progress

#: limit for names in one line
_NAMES = 5


class Translation:
    """Translates binlogs, given the first file's FormatDescription.

    A doubt (see `databus_changes.doubts`) raises the error that stops the reader. With `lenient`, the doubtful changes
    are left out, and so are transactions without an end. Left out in any case are statements on tables that the files
    do not describe, and XA transactions whose XA PREPARE they lack, because there is no server to read from; XA
    transactions that are only prepared; and, with `inside`, rows before the first transaction.
    `partial`: as in `Translator`. `ignored`: doubts of no interest.
    """

    def __init__(
        self,
        head: FormatDescription,
        captured: CapturedTables,
        definitions: Definitions,
        *,
        lenient: bool,
        inside: bool,
        partial: bool = False,
        ignored: frozenset[Reason] = frozenset(),
    ) -> None:
        tracker = definitions.tracker(head, captured.captures_some)
        self._translator = Translator(
            captured, flavor_of(head), tracker, Progress(), partial=partial, on_doubt=self._on_doubt
        )
        self._numbered = NumberedTransactions()
        self._complete = CompleteTransactions() if lenient else None
        #: whether reading started in the middle of a file, and no transaction has begun or ended since
        self._inside = inside
        self._ignored = ignored
        #: reason → (count, file and offset of the first doubt)
        self._left_out: dict[Reason, tuple[int, str, int]] = {}
        #: names of tables whose key may be a unique key instead of the primary key
        self._assumed_keys: set[str] = set()
        #: adds column names to a table map; called by the decoder
        self.describe = tracker.describe

    def translate(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[Event]:
        """Translate one event to definitions and changes. Transactions with changes are numbered from 1.

        Raises FatalError for a doubt, unless what is in doubt is left out.
        """
        changes = result(self._translator.translate([event], tables))
        if isinstance(event, Gtid | Xid | XaPrepare) or self._translator.in_transaction:
            self._inside = False
        events = self._complete.add(self._noted(changes), event) if self._complete is not None else self._noted(changes)
        return self._numbered.of(events)

    def _noted(self, changes: Iterable[Event]) -> Iterator[Event]:
        """Yield changes, without those that only concern a pipeline's progress. Note tables whose key is assumed."""
        for change in changes:
            if isinstance(change, TableDefinition) and change.table.key_assumed:
                self._assumed_keys.add(change.table.full_name)
            if not isinstance(change, Prepared | Decided):
                yield change

    def finish(self) -> Iterator[str]:
        """Finish after the last file; yield one line for each kind of data that was left out."""
        if self._complete is not None:
            if self._complete.open_since is not None:
                self._add(Reason.UNFINISHED_TRANSACTION, *self._complete.open_since)
            self._complete.close()
        for held in self._translator.prepared.held():
            self._add(Reason.XA_PREPARE, held.first.file, held.first.start)
        for reason, (count, file, offset) in self._left_out.items():
            yield f"{reason}: {count} left out, the first at {file}:{offset}"

    def assumptions(self) -> Iterator[str]:
        """Yield one line if the keys of tables were assumed to be primary keys."""
        if self._assumed_keys:
            yield (
                f"tables whose key is assumed to be the primary key: {len(self._assumed_keys)} "
                f"({_shortened(sorted(self._assumed_keys))}); the files do not describe these tables completely, "
                "so it may be a unique key"
            )

    def _on_doubt(self, doubt: Doubt) -> None:
        if doubt.reason in self._ignored:
            return
        is_offline = doubt.reason in {Reason.UNDESCRIBED_TABLE, Reason.XA_COMMIT}
        is_inside = doubt.reason is Reason.ROWS_OUTSIDE_TRANSACTION and self._inside
        if self._complete is None and not is_offline and not is_inside:
            is_nameless = doubt.reason in {Reason.UNKNOWN_TABLE, Reason.COLUMN_MISMATCH}
            names = "--schema FILE gives the table's definition, " if is_nameless else ""
            raise type(doubt.error)(f"{doubt.text}; {names}--lenient leaves the doubtful changes out and continues")
        if self._complete is not None and doubt.whole_transaction:
            self._complete.drop()
        self._add(doubt.reason, doubt.file, doubt.offset)

    def _add(self, reason: Reason, file: str, offset: int) -> None:
        count, file, offset = self._left_out.get(reason, (0, file, offset))
        self._left_out[reason] = count + 1, file, offset


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:_NAMES] + ["…"] * (len(names) > _NAMES))
