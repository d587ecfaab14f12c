"""The transactions that `--gtids` and `--exclude-gtids` list."""

import re

from databus_binlog.gtid import MySqlGtidSet

_OF_MARIADB = re.compile(r"\d+-\d+-\d+")


class GtidList:
    """A GTID set of MySQL, or single GTIDs of MariaDB, whose own sets name only the last transaction of each domain.

    Raises ValueError for any other text.
    """

    def __init__(self, text: str) -> None:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        self._of_mariadb = {part for part in parts if _OF_MARIADB.fullmatch(part)}
        try:
            self._of_mysql = MySqlGtidSet.from_text(",".join(part for part in parts if part not in self._of_mariadb))
        except ValueError:
            parts = []
        if not parts:
            raise ValueError(f"{text[:200]!r} is neither GTIDs of MariaDB (0-1-9,0-1-10) nor a GTID set of MySQL")

    def __contains__(self, gtid: str) -> bool:
        return self._of_mysql.contains(gtid) if ":" in gtid else gtid in self._of_mariadb
