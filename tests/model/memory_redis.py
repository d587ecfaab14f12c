"""A Redis in memory: the pipe's real functions, on the few commands that they call.

tests/contract/test_pipe_model.py compares it with a real Redis.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

from lupa.lua51 import LuaRuntime
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from model.turns import request

_PRELUDE = b"""
local call, register = ...
redis = { call = call }
function redis.status_reply(text) return { ok = text } end
function redis.register_function(name, callback)
  if type(name) == 'table' then register(name.function_name, name.callback) else register(name, callback) end
end
"""


class Store:
    """Hashes and streams, and the commands on them."""

    def __init__(self) -> None:
        self.hashes: dict[bytes, dict[bytes, bytes]] = {}
        #: stream → first part of an entry's id, which counts from 1 → fields
        self.streams: dict[bytes, dict[int, list[bytes]]] = {}
        #: stream → id of its last entry, even if that was deleted
        self.last_ids: dict[bytes, int] = {}

    def call(self, command: bytes, key: bytes, *args: bytes) -> Any:
        method: Callable[..., Any] = getattr(self, f"_{command.decode().lower()}")
        return method(key, *args)

    def _del(self, *keys: bytes) -> int:
        for key in keys:
            self.streams.pop(key, None)
            self.last_ids.pop(key, None)
        return sum(self.hashes.pop(key, None) is not None for key in keys)

    def _hset(self, key: bytes, *pairs: bytes) -> int:
        self.hashes.setdefault(key, {}).update(zip(pairs[::2], pairs[1::2], strict=True))
        return 0

    def _hget(self, key: bytes, field: bytes) -> bytes | None:
        return self.hashes.get(key, {}).get(field)

    def _hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        return [self._hget(key, field) for field in fields]

    def _hincrby(self, key: bytes, field: bytes, by: bytes) -> int:
        value = int(self._hget(key, field) or 0) + int(by)
        self._hset(key, field, b"%d" % value)
        return value

    def _xadd(self, key: bytes, entry_id: bytes, *fields: bytes) -> bytes:
        number = _number(entry_id)
        if number <= self.last_ids.get(key, 0):
            raise ResponseError("The ID specified in XADD is equal or smaller than the target stream top item")
        self.streams.setdefault(key, {})[number] = list(fields)
        self.last_ids[key] = number
        return entry_id

    def _xtrim(self, key: bytes, _minid: bytes, _exactly: bytes, entry_id: bytes) -> int:
        stream = self.streams.get(key, {})
        gone = [number for number in stream if number < _number(entry_id)]
        for number in gone:
            del stream[number]
        return len(gone)


class MemoryRedis:
    """Stands in for redis.asyncio.Redis, with the methods that the pipe calls. Every call waits for its turn."""

    def __init__(self) -> None:
        self.store = Store()
        self._functions: dict[bytes, Any] = {}

    def copy(self) -> Store:
        """Return a copy of all data, like a replica that receives no more updates."""
        return deepcopy(self.store)

    def flush(self) -> None:
        """Delete everything, including the functions."""
        self.store, self._functions = Store(), {}

    async def function_load(self, source: str, *, replace: bool) -> None:
        assert replace
        await self._request(lambda: self._functions.update(_functions(source)))

    async def fcall(self, name: str, numkeys: int, *args: bytes | str | int) -> Any:
        values = [_bytes(arg) for arg in args]
        return await self._request(lambda: self._fcall(name.encode(), values[:numkeys], values[numkeys:]))

    async def xread(self, streams: dict[str, str], *, count: int, block: int | None) -> Any:
        """Read without waiting: the caller retries at its next turn."""
        ((name, after),) = streams.items()
        return await self._request(lambda: self._xread(name.encode(), _number(after.encode()), count))

    def _fcall(self, name: bytes, keys: list[bytes], args: list[bytes]) -> Any:
        if name not in self._functions:
            raise ResponseError("Function not found")
        library, function = self._functions[name]
        library.store = self.store
        return _answer(function(library.lua.table_from(keys), library.lua.table_from(args)))

    def _xread(self, key: bytes, after: int, count: int) -> Any:
        stream = self.store.streams.get(key, {})
        found = [(b"%d-0" % number, _pairs(stream[number])) for number in stream if number > after]
        return [[key, found[:count]]] if found else []

    async def _request(self, effect: Callable[[], Any]) -> Any:
        return await request(effect, RedisConnectionError("the connection broke"), repeats=True)


class _Library:
    """A library of functions in an interpreter of its own, with Redis' version of Lua (5.1)."""

    def __init__(self, source: str) -> None:
        self.lua = LuaRuntime(encoding=None)
        self.functions: dict[bytes, Any] = {}
        self.store = Store()
        self.lua.execute(_PRELUDE, self._call, self.functions.__setitem__)
        self.lua.execute(source.partition("\n")[2].encode())  # without the first line, a shebang

    def _call(self, *args: bytes | int) -> Any:
        answer = self.store.call(*map(_bytes, args))
        if isinstance(answer, list):
            return self.lua.table_from([False if value is None else value for value in answer])
        return False if answer is None else answer


@cache
def _functions(source: str) -> dict[bytes, Any]:
    library = _Library(source)
    return {name: (library, function) for name, function in library.functions.items()}


def _answer(value: Any) -> Any:
    """Convert the result of a Lua function to what redis-py returns."""
    if value is None or value is False:
        return None
    if isinstance(value, bytes | int):
        return value
    fields = dict(value.items())
    if b"err" in fields:
        raise ResponseError(fields[b"err"].decode())
    return fields.get(b"ok") or [_answer(fields[index]) for index in range(1, len(fields) + 1)]


def _bytes(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _number(entry_id: bytes) -> int:
    return int(entry_id.partition(b"-")[0])


def _pairs(fields: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(fields[::2], fields[1::2], strict=True))
