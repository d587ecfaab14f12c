from collections.abc import Callable, Mapping
from typing import final

from databus_binlog.events import Events
from databus_binlog.gtid import Flavor
from databus_binlog.table_map import TableMap

Buffer = bytes | bytearray | memoryview

@final
class Decoder:
    failure: BaseException | None
    finished: bool
    semi_sync: bool
    file: str
    offset: int
    def __init__(
        self,
        *,
        flavor: Flavor = "mysql",
        wanted: Callable[[str, str], bool] | None = None,
        collations: Mapping[int, str] | None = None,
        describe: Callable[[TableMap], TableMap] | None = None,
        by_statement: bool = False,
        file: str = "",
        offset: int = 0,
        semi_sync: bool = False,
        row_limit: int | None = None,
    ) -> None: ...
    @property
    def pending(self) -> bool: ...
    @property
    def more(self) -> bool: ...
    @property
    def drained(self) -> bool: ...
    def feed(self, data: Buffer, size: int = -1) -> Events: ...
    def feed_file(self, data: Buffer) -> Events: ...
    def finish(self) -> None: ...
    def take_ack(self) -> tuple[str, int] | None: ...
