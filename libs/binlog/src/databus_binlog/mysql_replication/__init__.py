"""The second engine: a dump read and decoded by mysql-replication, with the same events as the decoder's.

Written by others, it shows where one of the two is wrong. It is slow, and stops with an error at what that library
reads wrongly: `limits` lists what the server's settings and tables show beforehand, `gate` keeps events from it that it
would lose, `values` refuses values that it does not give exactly.
"""

from databus_binlog.mysql_replication.limits import faults
from databus_binlog.mysql_replication.stream import LibraryStream, open_stream

__all__ = ["LibraryStream", "faults", "open_stream"]
