"""Requests to skip one transaction of the source: its rows become dead letters, and its tables are parked (ADR 19)."""

import msgspec


class Skip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to skip one transaction. It is deleted together with the progress past the transaction."""

    #: GTID of the transaction; empty if it has none: then its position identifies it
    gtid: str = ""
    #: identity of the server whose binlog has the position
    server: str
    #: position of the transaction's first event
    file: str
    offset: int
    #: time of the request, in µs since the epoch
    requested_us: int

    @property
    def transaction(self) -> str:
        """GTID or position, as `databus pipeline skip` takes it."""
        return self.gtid or f"{self.file}:{self.offset}"

    @property
    def key(self) -> bytes:
        """Key of the request's record."""
        return msgspec.json.encode(("skip", self.transaction))

    def is_of(self, gtid: str, server: str, place: tuple[str, int]) -> bool:
        """Return whether the request is for the transaction with this GTID, at this place of a server."""
        if self.gtid:
            return self.gtid == gtid
        return (self.server, self.file, self.offset) == (server, *place)
