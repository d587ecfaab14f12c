"""The server's defaults that a statement relies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from databus_binlog import Server
from databus_binlog.gtid import Flavor
from databus_binlog.position import release
from databus_changes.charsets import charset_of
from databus_changes.tables import TableName

if TYPE_CHECKING:  # not imported at run time: DDL in binlog files is read without a server
    from databus_binlog.session import Session

_NO_WIDTHS_SINCE = (8, 0, 19)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A server's defaults, as far as the definition of a table depends on them."""

    flavor: Flavor
    #: whether information_schema prints the display widths of integers, as in int(11)
    integer_widths: bool
    #: whether a TIMESTAMP column with neither NULL nor NOT NULL may be NULL (explicit_defaults_for_timestamp)
    explicit_timestamps: bool = True
    #: character set of a schema that is created without one, by a session that does not set another one
    charset: str = "utf8mb4"
    #: whether names of tables are not case-sensitive (lower_case_table_names)
    folds_names: bool = False

    def schema(self, name: str) -> str:
        """Return a schema's name in the form in which names are compared, as in `name`."""
        return name.lower() if self.folds_names else name

    def name(self, schema: str, table: str) -> TableName:
        """Return a table's name in the form in which names are compared: in lower case if case does not matter."""
        return (schema.lower(), table.lower()) if self.folds_names else (schema, table)


def prints_widths(flavor: Flavor, version: str) -> bool:
    """Return whether a server's information_schema prints display widths."""
    return flavor == "mariadb" or release(version) < _NO_WIDTHS_SINCE


async def dialect_of(session: Session) -> Dialect:
    """Read the dialect from a server's variables."""
    server: Server = session.server
    names = "'collation_server', 'explicit_defaults_for_timestamp', 'lower_case_table_names'"
    rows = await session.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    values = {str(name): str(value) for name, value in rows}
    return Dialect(
        flavor=server.flavor,
        integer_widths=prints_widths(server.flavor, server.version),
        explicit_timestamps=values.get("explicit_defaults_for_timestamp") == "ON",
        charset=charset_of(values["collation_server"]),
        folds_names=values["lower_case_table_names"] != "0",
    )
