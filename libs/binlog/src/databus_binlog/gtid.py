"""Sets of executed transactions: MySQL's GTID sets and MariaDB's GTID positions."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, Self, get_args
from uuid import UUID

from databus_binlog.errors import InvalidPosition
from databus_binlog.intervals import Intervals, insert, subtract

Flavor = Literal["mysql", "mariadb"]

_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}\Z")


class GtidSet(ABC):
    """The set of executed transactions. `add` extends it; `str()` returns it in the server's own notation."""

    @staticmethod
    def parse(flavor: Flavor, text: str) -> GtidSet:
        """Parse a server's text, for example that of `@@gtid_executed` or `@@gtid_binlog_pos`.

        Raises InvalidPosition if it is malformed.
        """
        kind = MySqlGtidSet if flavor == "mysql" else MariaDbGtidPosition
        try:
            return kind.from_text(text)
        except ValueError as error:
            raise InvalidPosition(f"{text[:200]!r} is not a {flavor} GTID set: {error}") from error

    @staticmethod
    def of_either(text: str) -> GtidSet:
        """Parse a text of MySQL or of MariaDB. Raises InvalidPosition if it is neither."""
        for flavor in get_args(Flavor):
            with suppress(InvalidPosition):
                return GtidSet.parse(flavor, text)
        raise InvalidPosition(f"{text[:200]!r} is not a GTID set of MySQL or MariaDB")

    @classmethod
    @abstractmethod
    def from_text(cls, text: str) -> GtidSet:
        """Parse a text of this flavor; raise ValueError if it is malformed."""

    @abstractmethod
    def add(self, gtid: str) -> None:
        """Add a transaction. An anonymous transaction ("") changes nothing."""

    @abstractmethod
    def add_all(self, gtids: Iterable[str]) -> None:
        """Add transactions in the order in which they were executed."""

    @abstractmethod
    def merge(self, text: str) -> None:
        """Add all transactions of a set, given as its text; raise ValueError if the text is malformed."""

    @abstractmethod
    def contains(self, gtid: str) -> bool:
        """Return whether the transaction is in the set."""

    @abstractmethod
    def minus(self, other: Self) -> Self:
        """Return the transactions that are in this set and not in the other."""

    @abstractmethod
    def of_sources_in(self, other: Self) -> Self:
        """Return the part of this set whose sources (MySQL: UUID and tag; MariaDB: domain) the other set has, too."""

    def covers(self, other: Self) -> bool:
        """Return whether everything in the other set is in this one."""
        return not other.minus(self)

    def __bool__(self) -> bool:
        return bool(str(self))

    @abstractmethod
    def __str__(self) -> str: ...

    def __contains__(self, gtid: str) -> bool:
        return self.contains(gtid)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # the set is mutable

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class MySqlGtidSet(GtidSet):
    """`uuid[:tag]:first-last:…,…`: intervals of numbers for each source and tag."""

    def __init__(self) -> None:
        #: (uuid, tag) → sorted, separate [first, end) intervals
        self._intervals: dict[tuple[str, str], Intervals] = {}

    @classmethod
    def from_text(cls, text: str) -> MySqlGtidSet:
        """Parse a GTID set. A tag applies to the intervals after it, up to the next tag."""
        result = cls()
        result.merge(text)
        return result

    def merge(self, text: str) -> None:
        """Add all transactions of a set."""
        for part in _parts(text):
            source, *items = (item.strip() for item in part.split(":"))
            uuid, tag = str(UUID(source)), ""
            if not items:
                raise ValueError(f"no interval after {source}")
            for item in items:
                if not item[:1].isdigit():
                    tag = _valid_tag(item)
                    continue
                first, _, last = item.partition("-")
                self._insert((uuid, tag), int(first), int(last or first) + 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> MySqlGtidSet:
        """Decode a set as PREVIOUS_GTIDS and COM_BINLOG_DUMP_GTID contain it, with or without tags."""
        result = cls()
        (head,) = struct.unpack_from("<Q", data)
        tagged = head >> 56 == 1
        offset = 8
        for _ in range((head >> 8) & 0xFFFFFFFFFFFF if tagged else head):
            uuid, tag = str(UUID(bytes=data[offset : offset + 16])), ""
            offset += 16
            if tagged:
                length = data[offset] >> 1
                tag = data[offset + 1 : offset + 1 + length].decode("ascii")
                offset += 1 + length
            (count,) = struct.unpack_from("<Q", data, offset)
            offset += 8
            for first, end in struct.iter_unpack("<QQ", data[offset : offset + 16 * count]):
                result._insert((uuid, tag), first, end)
            offset += 16 * count
        return result

    def to_bytes(self) -> bytes:
        """Encode for COM_BINLOG_DUMP_GTID; in the form with tags (MySQL ≥ 8.3) only if the set has tags."""
        tagged = any(tag for _, tag in self._intervals)
        count = len(self._intervals)
        parts = [struct.pack("<Q", 1 | count << 8 | 1 << 56 if tagged else count)]
        for (uuid, tag), intervals in sorted(self._intervals.items()):
            parts.append(UUID(uuid).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
            parts.append(struct.pack("<Q", len(intervals)))
            parts.extend(struct.pack("<QQ", first, end) for first, end in intervals)
        return b"".join(parts)

    def add(self, gtid: str) -> None:
        """Add `uuid:n` or `uuid:tag:n`."""
        if gtid:
            key, number = _split(gtid)
            self._insert(key, number, number + 1)

    def add_all(self, gtids: Iterable[str]) -> None:
        """Add transactions in their order; consecutive numbers of one source are added as one interval."""
        run, first, end = ("", ""), 0, 0
        for gtid in filter(None, gtids):
            key, number = _split(gtid)
            if key != run or number != end:
                if end:
                    self._insert(run, first, end)
                run, first = key, number
            end = number + 1
        if end:
            self._insert(run, first, end)

    def contains(self, gtid: str) -> bool:
        """Return whether `uuid:n` or `uuid:tag:n` is in the set."""
        key, number = _split(gtid)
        return any(first <= number < end for first, end in self._intervals.get(key, ()))

    def minus(self, other: Self) -> Self:
        """Return the transactions that are in this set and not in the other."""
        rest = type(self)()
        for key, own in self._intervals.items():
            if left := subtract(own, other._intervals.get(key, [])):
                rest._intervals[key] = left
        return rest

    def of_sources_in(self, other: Self) -> Self:
        """Return the part of this set whose sources (UUID and tag) the other set has, too."""
        kept = type(self)()
        kept._intervals = {key: own for key, own in self._intervals.items() if key in other._intervals}
        return kept

    def _insert(self, key: tuple[str, str], first: int, end: int) -> None:
        if not 0 < first < end:
            raise ValueError(f"interval {first}-{end - 1} is empty or starts below 1")
        insert(self._intervals.setdefault(key, []), first, end)

    def __str__(self) -> str:
        sources: dict[str, str] = {}
        for (uuid, tag), intervals in sorted(self._intervals.items()):
            texts = [str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in intervals]
            sources[uuid] = ":".join([sources.get(uuid, uuid), *([tag] if tag else []), *texts])
        return ",".join(sources.values())


class MariaDbGtidPosition(GtidSet):
    """`domain-server-sequence,…`: the last transaction of each domain, which stands for all earlier ones."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    @classmethod
    def from_text(cls, text: str) -> MariaDbGtidPosition:
        """Parse `domain-server-sequence,…`."""
        result = cls()
        result.merge(text)
        return result

    def merge(self, text: str) -> None:
        """Make each transaction of the text the last one of its domain."""
        for part in _parts(text):
            self.add(part)

    def add(self, gtid: str) -> None:
        """Make the transaction the last one of its domain."""
        if gtid:
            domain, server, sequence = _triple(gtid)
            self._last[domain] = (server, sequence)

    def add_all(self, gtids: Iterable[str]) -> None:
        """Add transactions in their order: only the last one of each domain counts."""
        for gtid in {gtid.partition("-")[0]: gtid for gtid in gtids}.values():
            self.add(gtid)

    def contains(self, gtid: str) -> bool:
        """Return whether the last transaction of the GTID's domain is this one or a later one."""
        domain, _, sequence = _triple(gtid)
        return domain in self._last and sequence <= self._last[domain][1]

    def minus(self, other: Self) -> Self:
        """Return the last transaction of each domain in which this position is ahead of the other.

        A position also counts as ahead if both last transactions have the same sequence number, but different servers.
        """
        rest = type(self)()
        for domain, (server, sequence) in self._last.items():
            other_server, other_sequence = other._last.get(domain, (server, -1))
            if sequence > other_sequence or (sequence == other_sequence and server != other_server):
                rest._last[domain] = server, sequence
        return rest

    def missing_from(self, binlog_state: str) -> Self:
        """Return the transactions of this position that a server lacks.

        `binlog_state` is that server's gtid_binlog_state: its last transaction of each domain and server id.
        """
        newest = {(domain, server): number for domain, server, number in map(_triple, _parts(binlog_state))}
        missing = type(self)()
        missing._last = {d: (s, n) for d, (s, n) in self._last.items() if newest.get((d, s), -1) < n}
        return missing

    def of_sources_in(self, other: Self) -> Self:
        """Return the part of this position whose domains the other position has, too."""
        kept = type(self)()
        kept._last = {domain: last for domain, last in self._last.items() if domain in other._last}
        return kept

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in sorted(self._last.items()))


def _parts(text: str) -> Iterator[str]:
    return filter(None, (part.strip() for part in text.split(",")))


def _split(gtid: str) -> tuple[tuple[str, str], int]:
    uuid, *tag, number = gtid.split(":")
    return (uuid, tag[0] if tag else ""), int(number)


def _triple(gtid: str) -> tuple[int, int, int]:
    domain, server, sequence = gtid.split("-")
    return int(domain), int(server), int(sequence)


def _valid_tag(text: str) -> str:
    tag = text.lower()
    if not _TAG.match(tag):
        raise ValueError(f"{text!r} is not a valid tag")
    return tag
