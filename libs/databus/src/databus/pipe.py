"""The hand-over from reader to publisher through a Redis stream that may lose anything at any time.

The publisher opens a *generation*: a fresh token, the progress to go on from, an empty stream. One reader claims it
with a token of its own and appends entries numbered from 0. The publisher takes only entries of its own generation, of
that generation's first claim, with exactly the next number; everything else ends the generation, and a new one begins
from the progress in Kafka. This check at the receiving end makes it safe; the refusal at the append only notices
sooner.
"""

import secrets
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import NamedTuple, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from databus import names
from databus.errors import GenerationLost
from databus.progress import Progress, decode_progress, encode_progress
from databus.redis_connection import redis_error

_SOURCE = files("databus").joinpath("pipe.lua").read_text()
_LIBRARY = names.function_library(_SOURCE)

#: of entries taken at once, if there are large ones
_TAKE_BYTES = 4 * 2**20


class Entry(NamedTuple):
    """One entry of the stream."""

    token: bytes
    claim: bytes
    number: int
    payload: bytes


class Acceptance:
    """Decides at the receiving end which entries of a generation count."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.claim: bytes | None = None
        self.next = 0

    def accept(self, entry: Entry) -> None:
        """Take the entry, or raise GenerationLost: nothing after it may be taken either."""
        if entry.token != self.token:
            raise GenerationLost("an entry of another generation is in the stream")
        if self.claim not in (None, entry.claim):
            raise GenerationLost("a second reader wrote into the stream")
        if entry.number != self.next:
            raise GenerationLost(f"entry {self.next} is missing in the stream, {entry.number} is there")
        self.claim = entry.claim
        self.next += 1


class _End:
    """What both ends share: the connection, the keys and the functions."""

    def __init__(self, redis: Redis, pipeline: str) -> None:
        self._redis = redis
        self._generation_key = names.generation_key(pipeline)
        self._stream_key = names.stream_key(pipeline)

    async def probe(self) -> None:
        """Call a function of the pipe to see that this Redis has functions and lets us use them."""
        with suppress(GenerationLost):
            await self._call("backlog", b"", b"")

    async def _call(self, function: str, *args: bytes | str | int) -> object:
        """Call a function of pipe.lua; load the library first where Redis does not know it (any more)."""
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

    async def retire(self) -> None:
        """Clear the generation, whoever holds it: the publisher opens a new one."""
        await self._call("retire", b"")

    async def give_up(self) -> None:
        """Clear the generation we were refused in, if it is still open.

        After lost writes it belongs to our claim and yet refuses us: nobody else would end it.
        """
        await self._call("retire", self._token)

    async def claim(self) -> Progress | None:
        """Claim the open generation and give the progress it starts from; None while there is none to claim."""
        claim = secrets.token_bytes(8)
        generation = cast("list[bytes] | None", await self._call("claim", claim))
        if generation is None:
            return None
        self._token, start = generation
        self._claim, self._number = claim, 0
        return decode_progress(start)

    async def append(self, payload: bytes) -> int:
        """Append the next entry and give the stream's backlog in bytes. Raises GenerationLost when refused."""
        backlog = await self._call("append", self._token, self._claim, self._number, payload)
        self._number += 1
        return cast(int, backlog)

    async def backlog(self) -> int:
        """Bytes in the stream that the publisher has not published yet. Raises GenerationLost as `append` does."""
        return cast(int, await self._call("backlog", self._token, self._claim))


class PublisherEnd(_End):
    """Opens generations, takes their entries and forgets them."""

    _acceptance = Acceptance(b"")
    #: entries that were forgotten, and their bytes
    _forgotten = _bytes = 0
    #: size of the largest entry that was waiting at the last trim
    _largest = 0
    #: whether the last `take` got all there was
    drained = False

    async def open(self, progress: Progress) -> None:
        """Begin a new generation at this progress, with an empty stream."""
        token = secrets.token_bytes(8)
        await self._call("open", token, encode_progress(progress))
        self._acceptance = Acceptance(token)
        self._forgotten = self._bytes = self._largest = 0

    async def take(self, *, count: int, block_ms: int | None) -> list[Entry]:
        """Take up to `count` entries, fewer of large ones; empty if none came within `block_ms` (None: do not wait).

        Raises GenerationLost if an entry is not the expected one or the generation is no longer open.
        """
        position = f"{self._acceptance.next}-0"
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
            await self.trim()
        return entries

    async def trim(self, entries: Sequence[Entry] = ()) -> None:
        """Forget entries, the next ones of those taken: they are published. Raises GenerationLost as `take` does."""
        self._forgotten += len(entries)
        self._bytes += sum(len(entry.payload) for entry in entries)
        largest = await self._call("trim", self._acceptance.token, self._forgotten, self._bytes)
        self._largest = cast(int, largest)


def _streams(answer: object) -> list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]:
    """Give XREAD's answer one shape: RESP 3 makes it a map, RESP 2 a list, and no entry is None or empty."""
    if not answer:
        return []
    if isinstance(answer, dict):
        return [(key, found[0] if found and isinstance(found[0], list) else found) for key, found in answer.items()]
    return cast("list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]", answer)


def _translate(error: RedisError) -> Exception:
    """Tell a lost generation from trouble with Redis."""
    if isinstance(error, ResponseError) and str(error).startswith("LOST"):
        return GenerationLost(str(error).removeprefix("LOST "))
    return redis_error(error)
