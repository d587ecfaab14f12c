"""The second engine: a dump read and decoded by mysql-replication, with the same events as the decoder's.

Written by others, it shows where one of the two is wrong. It is slow, and stops with an error at what that library
does not read rightly: `gate` keeps such events from it, `values` refuses what it reads but can't tell.
"""

from databus_binlog.mysql_replication.stream import LibraryStream, open_stream

__all__ = ["LibraryStream", "open_stream"]
