"""The second engine: mysql-replication reads and decodes a dump, with the same events as the decoder's.

It is an independent implementation, so a comparison finds errors of either. It is slow. It stops with an error at
everything that the library misreads: `limits` lists what the server's settings and tables show beforehand, `gate`
refuses events that the library would lose, and `values` refuses values that it does not return exactly.
"""

from databus_binlog.mysql_replication.limits import faults
from databus_binlog.mysql_replication.stream import LibraryStream, open_stream

__all__ = ["LibraryStream", "faults", "open_stream"]
