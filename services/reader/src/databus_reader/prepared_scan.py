"""Find the XA transactions that are prepared in a part of the binlog, and neither committed nor rolled back there."""

from databus_binlog import AnyEvent, Gtid, OversizedRows, Position, Query, Rows, XaPrepare
from databus_core.progress import PreparedTransaction


class PreparedScan:
    """Takes the events of a part of the binlog of a server in order. `server` is the server's identity.

    MariaDB logs an outcome before its engine carries it out. After a crash in between, the transaction is prepared
    again, and gets another outcome. `crashed` is the XID of a transaction that may be such a one: if it was committed
    in this part, its rows were published then; if it was rolled back, it may be committed now.
    """

    def __init__(self, server: str, crashed: str = "") -> None:
        self._server = server
        self._crashed = crashed
        #: XID → transaction that is open at the end; None if it has no captured rows
        self.open: dict[str, PreparedTransaction | None] = {}
        #: XIDs of all transactions that are prepared, committed or rolled back
        self.seen: set[str] = set()
        #: whether the last outcome of `crashed` is XA COMMIT, and no XA PREPARE follows it
        self.committed = False
        self._group: Gtid | None = None
        #: the open group, if it has captured rows
        self._captured: Gtid | None = None

    def add(self, event: AnyEvent) -> None:
        """Take the next event."""
        match event:
            case Gtid():
                self._group, self._captured = event, None
            case Rows() | OversizedRows():
                self._captured = self._group
            case XaPrepare(one_phase=False):
                self.seen.add(event.xid)
                self.open[event.xid] = self._transaction(event, self._captured) if self._captured else None
                self.committed &= event.xid != self._crashed
            case Query() if event.query[:12].upper().startswith((b"XA COMMIT ", b"XA ROLLBACK ")):
                _, verb, xid = event.query.decode().split(None, 2)
                if xid == self._crashed and verb.upper() == "ROLLBACK":
                    return
                self.seen.add(xid)
                self.open.pop(xid, None)
                self.committed |= xid == self._crashed

    def _transaction(self, event: XaPrepare, group: Gtid) -> PreparedTransaction:
        return PreparedTransaction(
            xid=event.xid,
            gtid=group.gtid,
            position=Position("", group.file, group.start),
            server=self._server,
            in_order=True,
            time_us=event.time * 1_000_000,
        )
