"""The second engine: the library mysql-replication reads and decodes a dump; the events are the same as the decoder's.

The library is an independent implementation, so a comparison finds errors of both. It is slow. The engine stops with an
error at everything that the library misreads: `limits` lists beforehand what the server's settings and tables show of
it, `gate` refuses events that the library would lose, and `values` refuses values that it does not return exactly.
"""

from databus_binlog.mysql_replication.limits import faults
from databus_binlog.mysql_replication.stream import LibraryStream, open_stream

__all__ = ["LibraryStream", "faults", "open_stream"]
