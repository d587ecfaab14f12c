"""The folders of a lake.

changes                every change of every table, in order (`databus_spark.changelog`)
mirror/SCHEMA/TABLE    a table's current rows
_databus/tables        the state of each table: live, or parked and why
_databus/quarantine    records that could not be used
_databus/downloads     files of dumps that are being loaded, or compared with mirrors
_databus/requests      requests of operators to load mirrors again
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Layout:
    """The paths of everything in the lake."""

    #: URL of a file system that Hadoop knows
    url: str

    @property
    def root(self) -> str:
        """The path of the lake as Hadoop writes it: with the scheme, and without the escapes of a `file://` URL."""
        return (unquote(self.url) if self.url.startswith("file:") else self.url).rstrip("/")

    @property
    def changes(self) -> str:
        """The path of the change log."""
        return f"{self.root}/changes"

    @property
    def tables(self) -> str:
        """The path of the tables' states."""
        return f"{self.root}/_databus/tables"

    @property
    def quarantine(self) -> str:
        """The path of the records that could not be used."""
        return f"{self.root}/_databus/quarantine"

    @property
    def requests(self) -> str:
        """The path of the requests of operators."""
        return f"{self.root}/_databus/requests"

    @property
    def downloads(self) -> str:
        """The path of dumps that are being loaded, or compared with mirrors."""
        return f"{self.root}/_databus/downloads"

    @property
    def mirrors(self) -> str:
        """The path of the mirrors' schemas."""
        return f"{self.root}/mirror"

    def mirror(self, schema: str, table: str) -> str:
        """Return the path of a table's mirror."""
        return f"{self.mirrors}/{escaped(schema)}/{escaped(table)}"


def escaped(name: str) -> str:
    """Escape a name so that no character has a meaning in paths and URLs; different names give different folders."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "".join(f"~{byte:02X}" for byte in match[0].encode()), name)


def unescaped(text: str) -> str:
    """Return the name that was escaped."""
    return unquote(text.replace("~", "%"))
