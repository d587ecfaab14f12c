"""The second engine: the library mysql-replication reads and decodes a dump.

The events are those of the decoder, with two exceptions (see `events`). The library is an independent implementation,
so comparing the two engines finds errors in either. The library is slow.

The engine stops with an error at everything that the library misreads: `limits` lists beforehand the server's settings
and columns that the library can't cope with, `gate` refuses events that the library would lose, and `values` refuses
values that the library does not return exactly.
"""

from databus_binlog.mysql_replication.limits import faults
from databus_binlog.mysql_replication.stream import LibraryStream, open_stream

__all__ = ["LibraryStream", "faults", "open_stream"]
