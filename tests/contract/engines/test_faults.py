"""The engine mysql-replication reports in advance what prevents reading: settings, columns, a missing package."""

import re
import sys

import pytest

from common.column_types import tables
from contract.engines.dumps import LIBRARY, random_server_id
from contract.engines.misread import is_misread_type
from databus_binlog import EngineUnavailable
from databus_binlog.mysql_replication import limits


async def test_the_error_of_a_missing_engine_names_the_package_to_install(login, queries, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("databus_binlog.mysql_replication")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymysqlreplication", None)
    advice = r"pip install 'databus-binlog\[mysql-replication\]'"
    async with login() as session:
        with pytest.raises(EngineUnavailable, match=advice):
            await session.dump(await queries.current_position(), server_id=random_server_id(), engine=LIBRARY)
        with pytest.raises(EngineUnavailable, match=advice):
            await session.engine_faults(LIBRARY)


@pytest.mark.parametrize(
    ("own", "setting", "value", "readable"),
    [
        ("mariadb", "log_bin_compress", "ON", "OFF"),
        ("mariadb", "binlog_alter_two_phase", "ON", "OFF"),
        ("mariadb", "binlog_row_metadata", "MINIMAL", "FULL"),
        ("mysql", "binlog_row_metadata", "MINIMAL", "FULL"),
        ("mysql", "binlog_transaction_compression", "ON", "OFF"),
        ("mysql", "binlog_row_value_options", "PARTIAL_JSON", ""),
    ],
    indirect=["own"],
)
async def test_a_setting_with_which_the_library_cannot_read_the_log_is_reported(
    own, execute, login, setting, value, readable
):
    await execute(f"SET GLOBAL {setting} = '{value}'")
    try:
        async with login() as session:
            [fault] = await session.engine_faults(LIBRARY, lambda *_: False)
            assert re.match(rf"{setting} is {value}, with which mysql-replication .*: set it to '{readable}'", fault)
            assert await session.engine_faults("native") == []
    finally:
        await execute(f"SET GLOBAL {setting} = '{readable}'")
    async with login() as session:
        assert await session.engine_faults(LIBRARY, lambda *_: False) == []


async def test_columns_of_wanted_tables_that_the_library_cannot_read_are_reported(
    own, schema, execute, login, monkeypatch
):
    matrix = [table for table in tables(own.kind) if table.name != "derived"]
    unreadable = {
        f"{schema}.{table.name}.c{number}"
        for table in matrix
        for number, column in enumerate(table.columns)
        if is_misread_type(column)
    }
    for table in matrix:
        for statement in table.creation:
            await execute(statement)
    name, label = "日" * 50, "x" * 200
    await execute(f"CREATE TABLE others ({name} INT, e ENUM('{label}'), f ENUM('a', ''), g SET('a', ''))")
    await execute(f"CREATE TABLE swe ({', '.join(f'c{number} TEXT CHARACTER SET swe7' for number in range(7))})")
    async with login() as session:

        async def faults(*names: str) -> list[str]:
            found = await session.engine_faults(LIBRARY, lambda *table: table in {(schema, name) for name in names})
            return [fault.removeprefix("mysql-replication can't read ") for fault in found]

        assert await faults("others") == [
            f"column names of more than 127 bytes: exclude the tables that contain {schema}.others.{name}",
            f"labels of more than 127 bytes: exclude the tables that contain {schema}.others.e",
            f"empty labels: exclude the tables that contain {schema}.others.f",
        ]
        listed = ", ".join(f"{schema}.swe.c{number}" for number in range(5))
        assert await faults("swe") == [f"text in swe7: exclude the tables that contain {listed} and 2 more"]
        monkeypatch.setattr(limits, "_MAX_LISTED", 1000)  # name all columns
        found = await faults(*(table.name for table in matrix))
    assert {column for fault in found for column in re.findall(rf"{schema}\.\S+\.c\d+", fault)} == unreadable
