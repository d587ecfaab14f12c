"""The hand-over from reader to publisher through a Redis stream, which may lose anything at any time.

The publisher opens a *generation*: a new token, the progress to resume from, an empty stream. One reader claims it with
a token of its own, the *claim*, and appends entries numbered from 0. The publisher accepts only entries of its own
generation, with the same claim as the generation's first entry and with exactly the next number. Anything else ends the
generation, and a new one is opened from the progress in Kafka. This check by the publisher makes the hand-over safe.
Redis also refuses wrong entries, but only to let the reader know early.
"""

import secrets
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import NamedTuple, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from databus_core import names
from databus_core.errors import GenerationLost
from databus_core.progress import Progress, decode_progress, encode_progress
from databus_core.redis_connection import redis_error, redis_errors

_SOURCE = files("databus_core").joinpath("pipe.lua").read_text()
_LIBRARY = names.function_library(_SOURCE)

#: limit in bytes for one read of the stream, if no entry exceeds `_largest`; a single larger entry is read, too
_TAKE_BYTES = 4 * 2**20


class Entry(NamedTuple):
    """One entry of the stream."""

    token: bytes
    claim: bytes
    number: int
    payload: bytes


class ReadTo(NamedTuple):
    """How far the reader has read: everything that was committed before a moment is in the first entries."""

    #: number of these entries of the generation
    entries: int
    #: the moment, in µs since the epoch by the reader's clock; 0: not known
    time_us: int


class Acceptance:
    """The publisher's check of the entries of one generation."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.claim: bytes | None = None
        self.next = 0

    def accept(self, entry: Entry) -> None:
        """Accept the next entry. Raises GenerationLost for any other; then no further entry may be used."""
        if not entry.token:
            raise GenerationLost("the reader has ended the generation")
        if entry.token != self.token:
            raise GenerationLost("the stream contains an entry of another generation")
        if self.claim not in (None, entry.claim):
            raise GenerationLost("a second reader appended to the stream")
        if entry.number != self.next:
            raise GenerationLost(f"the stream contains entry {entry.number} instead of {self.next}")
        self.claim = entry.claim
        self.next += 1


async def read_backlog(redis: Redis, pipeline: str) -> int | None:
    """Return the bytes in the stream that are not published yet, for clients; None if no generation is open."""
    with redis_errors():
        found = await cast(
            Awaitable["list[bytes | None]"], redis.hmget(names.generation_key(pipeline), ["appended", "taken"])
        )
    appended, taken = (None if value is None else int(value) for value in found)
    return None if appended is None or taken is None else appended - taken


async def read_moments(redis: Redis, pipeline: str) -> tuple[int, int]:
    """Return the moments up to which everything that was committed was read, and was published; 0: not known.

    In µs since the epoch, by the reader's clock.
    """
    with redis_errors():
        found = await cast(
            Awaitable["list[bytes | None]"], redis.hmget(names.generation_key(pipeline), ["read_to", "published_to"])
        )
    read_to, published_to = (int(value or 0) for value in found)
    return read_to, published_to


class _End:
    """What both ends of the pipe share: the connection, the keys and the functions."""

    def __init__(self, redis: Redis, pipeline: str) -> None:
        self._redis = redis
        self._generation_key = names.generation_key(pipeline)
        self._stream_key = names.stream_key(pipeline)

    async def probe(self) -> None:
        """Call a function of the pipe, to verify that this Redis supports functions and permits their use."""
        with suppress(GenerationLost):
            await self._call("backlog", b"", b"", b"")

    async def _call(self, function: str, *args: bytes | str | int) -> object:
        """Call a function of pipe.lua; if Redis does not have the library, load it first."""
        name = f"{_LIBRARY}_{function}"
        try:
            try:
                return await self._fcall(name, args)
            except ResponseError as error:
                if "Function not found" not in str(error):
                    raise
            library = _SOURCE.replace("@LIBRARY@", _LIBRARY)
            await cast(Awaitable[object], self._redis.function_load(library, replace=True))
            return await self._fcall(name, args)
        except RedisError as error:
            raise _translate(error) from error

    async def _fcall(self, name: str, args: Sequence[bytes | str | int]) -> object:
        keys = (self._generation_key, self._stream_key)
        return await cast(Awaitable[object], self._redis.fcall(name, 2, *keys, *args))


class ReaderEnd(_End):
    """Claims a generation and appends to it."""

    _token = b""
    _claim = b""
    _number = 0

    @property
    def generation(self) -> str:
        """The generation that was claimed last, in hex digits for the log."""
        return self._token.hex()

    async def end_any_generation(self) -> None:
        """End the open generation, even if another reader claimed it; the publisher then opens a new one."""
        await self._call("retire", b"")

    async def end_generation(self) -> None:
        """End the generation that this reader claimed last, if it is still open.

        It may be open even if Redis refused an entry of this reader, because Redis may have lost writes.
        """
        await self._call("retire", self._token)

    async def claim(self) -> Progress | None:
        """Claim the open generation. Returns the progress to start from; None if there is no unclaimed generation."""
        claim = secrets.token_bytes(8)
        generation = cast("list[bytes] | None", await self._call("claim", claim))
        if generation is None:
            return None
        self._token, start = generation
        self._claim, self._number = claim, 0
        return decode_progress(start)

    async def append(self, payload: bytes, read_to_us: int = 0) -> int:
        """Append the next entry. Returns the backlog in bytes. Raises GenerationLost if Redis does not expect it.

        Everything that was committed before `read_to_us` (µs since the epoch; 0: not known) is in the stream then.
        """
        backlog = await self._call("append", self._token, self._claim, self._number, payload, read_to_us)
        self._number += 1
        return cast(int, backlog)

    async def backlog(self, read_to_us: int | None = None) -> int:
        """Return the bytes in the stream that are not published yet. Raises GenerationLost if our claim is over.

        `read_to_us` means what it means for `append`.
        """
        return cast(
            int, await self._call("backlog", self._token, self._claim, "" if read_to_us is None else read_to_us)
        )


class PublisherEnd(_End):
    """Opens generations, reads their entries, and trims those that are published."""

    _acceptance = Acceptance(b"")
    #: number of entries of this generation that were trimmed
    _trimmed = 0
    #: sum of the sizes of those entries, in bytes
    _bytes = 0
    #: size of the largest entry since the stream was last empty, in bytes, as of the last trim
    _largest = 0
    #: whether the last `take` read everything that was in the stream
    drained = False
    #: everything that was committed before this moment is published, in µs since the epoch; 0: not known
    published_to_us = 0
    #: how far the reader has read, as of the last trim
    read_to = ReadTo(0, 0)

    @property
    def generation(self) -> str:
        """The generation that was opened last, in hex digits for the log."""
        return self._acceptance.token.hex()

    async def open(self, progress: Progress) -> None:
        """Open a new generation at this progress, with an empty stream."""
        token = secrets.token_bytes(8)
        published_to = await self._call("open", token, encode_progress(progress), self.published_to_us)
        self.published_to_us = cast(int, published_to)
        self._acceptance = Acceptance(token)
        self._trimmed = self._bytes = self._largest = 0
        self.read_to = ReadTo(0, 0)

    async def take(self, *, count: int, block_ms: int | None) -> list[Entry]:
        """Read up to `count` entries, fewer if they are large. Wait up to `block_ms` for the first (None: do not wait).

        Raises GenerationLost for an unexpected entry, or if none arrives in `block_ms` and the generation has ended.
        """
        position = f"{self._acceptance.next}-0"  # the id of the last accepted entry: its number plus one
        count = max(1, min(count, _TAKE_BYTES // (self._largest or 1)))
        try:
            answer = await self._redis.xread({self._stream_key: position}, count=count, block=block_ms)
        except RedisError as error:
            raise _translate(error) from error
        entries = [
            Entry(fields[b"token"], fields[b"claim"], int(entry_id.split(b"-")[0]) - 1, fields[b"payload"])
            for _, found in _streams(answer)
            for entry_id, fields in found
        ]
        for entry in entries:
            self._acceptance.accept(entry)
        self.drained = len(entries) < count
        if not entries and block_ms is not None:
            await self.trim()  # removes nothing, but raises GenerationLost if the generation has ended
        return entries

    async def trim(self, entries: Sequence[Entry] = ()) -> None:
        """Remove these published entries, the stream's oldest. Raises GenerationLost if the generation has ended."""
        self._trimmed += len(entries)
        self._bytes += sum(len(entry.payload) for entry in entries)
        answer = await self._call("trim", self._acceptance.token, self._trimmed, self._bytes, self.published_to_us)
        self._largest, appended, time_us = cast("tuple[int, int, int]", answer)
        self.read_to = ReadTo(appended, time_us)


def _streams(answer: object) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
    """Convert XREAD's answer to one form: RESP 3 has a map, RESP 2 a list; without entries either is None or empty."""
    if not answer:
        return []
    if isinstance(answer, dict):
        return [(key, found[0] if found and isinstance(found[0], list) else found) for key, found in answer.items()]
    return cast("list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]", answer)


def _translate(error: RedisError) -> Exception:
    """Return GenerationLost for an error of the pipe's functions, else what `redis_error` returns."""
    if isinstance(error, ResponseError) and str(error).startswith("LOST"):
        return GenerationLost(str(error).removeprefix("LOST "))
    return redis_error(error)
