"""The description of a server, from its variables."""

from collections.abc import Iterable
from typing import Any

from databus_binlog.gtid import Flavor
from databus_binlog.position import Server

#: the variables that Server.variables contains, as far as the server has them
VARIABLES = (
    "binlog_alter_two_phase", "binlog_checksum", "binlog_format", "binlog_row_image", "binlog_row_metadata",
    "binlog_row_value_options", "binlog_transaction_compression", "enforce_gtid_consistency", "gtid_domain_id",
    "gtid_mode", "hostname", "log_bin", "log_bin_compress", "lower_case_table_names",
    "rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", "server_id", "server_uid", "server_uuid",
    "version",
)  # fmt: skip
#: the statement whose rows `described` reads
SHOW_VARIABLES = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})".format(
    ", ".join(f"'{name}'" for name in VARIABLES)
)


def described(rows: Iterable[tuple[Any, ...]]) -> Server:
    """Return the description of a server that has these variables."""
    variables = {str(name).lower(): str(value) for name, value in rows}
    version = variables["version"]
    flavor: Flavor = "mariadb" if "mariadb" in version.lower() else "mysql"
    return Server(
        flavor=flavor,
        version=version,
        server_id=int(variables["server_id"]),
        uuid=variables.get("server_uuid") or variables.get("server_uid", ""),
        gtid=flavor == "mariadb" or variables.get("gtid_mode") == "ON",
        variables=variables,
    )
