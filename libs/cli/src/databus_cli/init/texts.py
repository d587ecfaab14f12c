"""The configuration and the SQL that `databus init` writes."""

import json
import re
from pathlib import Path

from databus_cli.init.answers import Answers

_CONFIGURATION = """\
# MySQL Databus, written by `databus init`: one file for all services, each of which reads its part.
# An unknown key is an error. A variable of the environment overrides a value: DATABUS__SOURCE__USER=other.
# All settings: docs/reference/configuration.md. Check them: databus check --config THIS_FILE

# The pipeline. Its topics, keys and transactions are named after it: keep it.
name: {name}

source:
  # One server, or several with the same data (host:port), of which the reader uses one at a time.
  hosts: {hosts}
  user: {user}
  password_file: {password_file}
  # Tables to capture, as schema.table with * and ?; exclude: has the exceptions.
  include: {tables}
  # Encrypt the connections, and verify the server's certificate:
  # tls: {{ca_file: /path/to/ca.pem}}

redis:
  # A short-lived buffer between reader and publisher. With a password: password_file.
  url: {redis}

kafka:
  bootstrap_servers: {kafka}
  # For a managed Kafka: security_protocol, sasl and tls; docs/guide/deploy.md has examples.

reader:
  # Where a new pipeline begins. snapshot: all rows of all tables, then the changes. latest: only changes from now on.
  start: {start}

publisher:
  # Message format: databus, debezium-json, maxwell-json, canal-json, …
  format: databus
  topic: "{{name}}.{{schema}}.{{table}}"

dumps:
  # Folder of the dump API, and where clients find it.
  storage: file:///var/lib/databus/dumps
  url: http://127.0.0.1:8080
"""
_PREPARATION = """\
-- Prepares {title} for MySQL Databus, written by `databus init`. Run it as an administrator.

-- Lines for my.cnf, section [mysqld]. Without a binlog until now, restart the server with them before you continue.
--   log_bin = mysql-bin
--   server_id = 1                        another number on every server
--   binlog_format = ROW
--   binlog_row_image = FULL
--   binlog_row_metadata = FULL           MySQL 8.0.1, MariaDB 10.5 or later
--   binlog_expire_logs_seconds = 604800  at least as long as a service may be down; MySQL 8.0, MariaDB 10.6 or later
{options}
-- The same for new sessions, at once. Sessions that are open now keep their former binlog_format.
SET GLOBAL binlog_format = 'ROW';
SET GLOBAL binlog_row_image = 'FULL';
SET GLOBAL binlog_row_metadata = 'FULL';  -- leave it out before MySQL 8.0.1 and MariaDB 10.5

-- The account of the services. RELOAD is for dumps and some backfills.
CREATE USER {account} IDENTIFIED BY {password};
GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.* TO {account};
{select}
{optional}"""
_OPTIONS = {
    "mysql": """\
--   gtid_mode = ON                       so that the reader can continue at another host
--   enforce_gtid_consistency = ON
""",
    "mariadb": "",
}
_OPTIONAL = {
    "mysql": "",
    "mariadb": """\

-- Optional, from MariaDB 10.5 on: DDL waits less for dumps, backfills pause while a replica is behind, and
-- `databus check` sees whether another replica has the reader's id.
-- GRANT BINLOG ADMIN, SLAVE MONITOR, REPLICATION MASTER ADMIN ON *.* TO {account};
""",
}


def configuration(answers: Answers, password_file: Path) -> str:
    """Return the YAML file. JSON is YAML, so values are written as JSON."""
    values = {name: json.dumps(value, ensure_ascii=False) for name, value in vars(answers).items()}
    return _CONFIGURATION.format(**values, password_file=json.dumps(str(password_file), ensure_ascii=False))


def preparation(answers: Answers, password: str) -> str:
    """Return the SQL that prepares the server, with the lines for my.cnf as comments."""
    account = f"{_text(answers.user)}@'%'"
    targets = dict.fromkeys(map(select_target, answers.tables))
    return _PREPARATION.format(
        title={"mysql": "MySQL", "mariadb": "MariaDB"}[answers.server],
        options=_OPTIONS[answers.server],
        account=account,
        password=_text(password),
        select="\n".join(f"GRANT SELECT ON {target} TO {account};" for target in targets),
        optional=_OPTIONAL[answers.server].format(account=account),
    )


def select_target(pattern: str) -> str:
    """Return the smallest object of a GRANT that covers a `schema.table` pattern: a table, a schema, or everything."""
    schema, _, table = pattern.partition(".")
    if {*schema} & {"*", "?"}:
        return "*.*"
    if {*table} & {"*", "?"}:
        # In the name of a schema, but not in that of a table, _ and % are wildcards.
        escaped = re.sub("([_%])", r"\\\1", schema)
        return f"{_name(escaped)}.*"
    return f"{_name(schema)}.{_name(table)}"


def _name(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
