"""`doubt.cascades: heal`: a child whose rows a foreign key has changed is loaded again, and never parked."""

from typing import Any

import pytest

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle, upserted
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server

TABLES = {
    "p": "id INT PRIMARY KEY, v VARCHAR(9)",
    "c": "id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE",
    "g": "id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE SET NULL",
}
ROWS = {"p": "(1, 'a'), (2, 'b'), (3, 'c')", "c": "(10, 1), (20, 2), (30, 3)", "g": "(100, 10), (200, 20), (300, 30)"}


@pytest.fixture(params=["mariadb"])
def source(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.mark.parametrize(
    ("statements", "loaded", "rows"),
    [
        (
            ["DELETE FROM p WHERE id = 1", "DELETE FROM p WHERE id = 2", "INSERT INTO p VALUES (4, 'd')"],
            {"c", "g"},
            {"c": {b"30": b"3"}, "g": {b"100": None, b"200": None, b"300": b"30"}},
        ),
        (
            ["UPDATE p SET id = 7 WHERE id = 1"],
            {"c"},
            {"c": {b"10": b"7", b"20": b"2", b"30": b"3"}, "g": {b"100": b"10", b"200": b"20", b"300": b"30"}},
        ),
        (["UPDATE p SET v = 'x'"], set(), {"c": {b"10": b"1", b"20": b"2", b"30": b"3"}}),
        (
            [
                "CREATE TABLE n (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
                "INSERT INTO n VALUES (1, 1), (2, 2)",
                "DELETE FROM p WHERE id = 1",
            ],
            {"c", "g", "n"},
            {"n": {b"2": b"2"}},
        ),
    ],
    ids=["delete", "key update", "another update", "a new foreign key"],
)
async def test_children_are_loaded_again_after_a_change_of_their_parent(
    make_pipeline: MakePipeline,
    source: Server,
    schema: str,
    execute: Execute,
    changes: Consume,
    statements: list[str],
    loaded: set[str],
    rows: dict[str, dict[bytes, bytes | None]],
) -> None:
    for table, columns in TABLES.items():
        await execute(f"CREATE TABLE {table} ({columns})")
        await execute(f"INSERT INTO {table} VALUES {ROWS[table]}")
    pipeline = make_pipeline(source, schema, reader={"start": "snapshot"}, doubt={"cascades": "heal"})
    await run_until_idle(pipeline)
    for statement in statements:
        await execute(statement)
    await run_until_idle(pipeline)

    states, _ = await read_states(load(pipeline.config))
    loads = [each for each in states.backfills.values() if each.cause == "heal"]
    assert {each.table for each in loads} == loaded
    assert {states.state(each.id) for each in loads} <= {"done"}
    assert not states.doubts
    assert "is parked" not in pipeline.log("reader").read_text()
    for table, expected in rows.items():
        consumer, messages = await changes(f"{pipeline.name}.{schema}.{table}"), list[dict[str, Any]]()
        while upserted(messages) != expected:  # what is published does not change any more
            messages += await consumer.until(1)
