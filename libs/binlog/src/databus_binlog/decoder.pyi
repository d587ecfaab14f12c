from collections.abc import Callable, Mapping
from typing import final

from databus_binlog.errors import BinlogError
from databus_binlog.events import Event
from databus_binlog.gtid import Flavor
from databus_binlog.table_map import TableMap

Buffer = bytes | bytearray | memoryview

@final
class Decoder:
    failure: BinlogError | None
    finished: bool
    file: str
    offset: int
    def __init__(
        self,
        *,
        flavor: Flavor = "mysql",
        wanted: Callable[[str, str], bool] | None = None,
        collations: Mapping[int, str] | None = None,
        describe: Callable[[TableMap], TableMap] | None = None,
        file: str = "",
        offset: int = 0,
    ) -> None: ...
    @property
    def pending(self) -> int: ...
    def feed(self, data: Buffer, size: int = -1) -> list[Event]: ...
    def feed_file(self, data: Buffer) -> list[Event]: ...

def float_text(value: float, single: bool = False) -> bytes: ...
def release(version: str) -> tuple[int, ...]: ...
