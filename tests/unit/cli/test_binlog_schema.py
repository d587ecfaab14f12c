"""`databus binlog --schema`: names and labels that a binlog file lacks come from the file that mysqldump writes."""

import subprocess
import sys

import pytest

from databus_changes.ddl.dialect import Dialect
from databus_cli.binlog.schema import read_schema

DUMP = """\
/*M!999999\\- enable the sandbox mode */
-- MySQL dump 10.13  Distrib 9.7.0, for Linux (x86_64)
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */ /*!80016 ENCRYPTION='N' */;

USE `shop`;
DROP TABLE IF EXISTS `sizes`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `sizes` (
  `e` enum('small','a;b') NOT NULL COMMENT 'it''s; /* one */',
  `s` set('x','y','z') NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER `t` AFTER INSERT ON `sizes` FOR EACH ROW BEGIN
  CREATE TEMPORARY TABLE `shop`.`sizes` (`id` int);
END */;;
DELIMITER ;
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `e`*/;
"""


@pytest.fixture
def schema(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "schema.sql").write_text(text)
        return str(tmp_path / "schema.sql")

    return write


@pytest.fixture
def sizes(binlog_file):
    def make(*, names: bool) -> str:
        return binlog_file().gtid().query("BEGIN").labels_row(names=names).xid().write()

    return make


def cells(run, *arguments):
    """Return the row's ENUM and SET in Debezium's format and in Maxwell's."""
    code, [debezium], _ = run(*arguments, "--quiet", "--format", "debezium-json", "--option", "schemas_enable=false")
    assert code == 0
    code, [maxwell], _ = run(*arguments, "--quiet", "--format", "maxwell-json")
    assert code == 0
    return [[row["e"], row["s"]] for row in (debezium["value"]["after"], maxwell["value"]["data"])]


@pytest.mark.parametrize("names", [False, True], ids=["without names", "with names"])
def test_names_and_labels_come_from_the_schema(run, schema, sizes, caplog, names):
    assert cells(run, sizes(names=names), "--schema", schema(DUMP)) == [["a;b", "x,z"], ["a;b", ["x", "z"]]]
    assert caplog.messages == []


def test_without_labels_the_numbers_are_printed_and_one_warning(run, binlog_file):
    file = binlog_file().gtid().query("BEGIN").labels_row(names=True).labels_row(names=True).xid().write()
    command = [sys.executable, "-m", "databus_cli", "binlog", file, "--quiet", "--format", "maxwell-json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.count('"data":{"e":"2","s":["5"]}') == 2
    [warning] = done.stderr.splitlines()
    assert warning.startswith("databus: the labels of ENUM and SET columns of shop.sizes are not known")


def test_comments_for_mariadb_are_read_only_for_mariadb(tmp_path):
    path = tmp_path / "schema.sql"
    path.write_text(
        "/*M!999999\\- enable the sandbox mode */\nCREATE DATABASE shop CHARSET utf8mb4; USE shop;"
        "CREATE TABLE t (c VARCHAR(9) /*M!100301 COMPRESSED*/);"
    )
    types = []
    for flavor in ("mysql", "mariadb"):
        history = read_schema(path, Dialect(flavor=flavor, integer_widths=True))
        assert history.charsets == {"shop": "utf8mb4"}
        types += [column.raw_type for column in history.tables["shop", "t"].columns]
    assert types == ["varchar(9)", "varchar(9) /*M!100301 COMPRESSED*/"]


def test_without_names_the_error_names_the_option(run, sizes):
    code, lines, [error] = run(sizes(names=False), "--quiet", "--format", "maxwell-json")
    assert (code, lines) == (1, [])
    assert "--schema FILE gives the table's definition" in error


def test_rows_that_do_not_fit_the_schema_stop_the_command(run, schema, sizes):
    dump = DUMP.replace("`s` set('x','y','z') NOT NULL", "`s` int NOT NULL")
    code, lines, [error] = run(sizes(names=False), "--schema", schema(dump), "--quiet", "--format", "maxwell-json")
    assert (code, lines) == (1, [])
    assert "do not fit what is known of the table (column s: type is set in the rows, int in the known table)" in error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DUMP.replace("USE `shop`;", ""), "no USE precedes table sizes (mysqldump --databases)"),
        (DUMP.replace("`s` set('x'", "`s` mystery('x'"), "a definition is not understood: CREATE TABLE `sizes`"),
        ("CREATE TABLE t (c CHAR(9) DEFAULT 'x", "not SQL in UTF-8, as mysqldump --no-data writes it"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(run, schema, sizes, text, reason):
    path = schema(text)
    code, lines, [error] = run(sizes(names=True), "--schema", path, "--quiet", "--format", "maxwell-json")
    assert (code, lines) == (1, [])
    assert error.startswith(f"databus: {path}: {reason}")


@pytest.mark.parametrize("names", [False, True], ids=["without names", "with names"])
def test_json_has_the_names_of_the_schema(run, schema, sizes, names):
    code, [line], notices = run(sizes(names=names), "--schema", schema(DUMP), "--quiet")
    assert (code, notices) == (0, [])
    assert line["row"] == {"e": "2", "s": "5"}


def test_json_has_numbered_columns_if_rows_do_not_fit_the_schema(run, schema, sizes):
    dump = DUMP.replace("`s` set('x','y','z') NOT NULL", "`s` int NOT NULL")
    code, [line], _ = run(sizes(names=False), "--schema", schema(dump), "--quiet")
    assert (code, line["row"]) == (0, {"@1": "2", "@2": "5"})


def test_json_applies_the_ddl_in_the_binlog_to_the_schema(run, schema, binlog_file):
    file = binlog_file().gtid().query("ALTER TABLE sizes RENAME COLUMN e TO size")
    file = file.gtid().query("BEGIN").labels_row(names=False).xid().write()
    _, [_, line], _ = run(file, "--schema", schema(DUMP), "--quiet")
    assert line["row"] == {"size": "2", "s": "5"}
