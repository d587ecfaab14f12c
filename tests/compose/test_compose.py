"""The shop under load in containers: the lake equals the database, and follows it after `down` and `up`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.waiting import eventually
from compose.stack import ComposeStack, why_not
from devstack import Server
from devstack.demo import compare, observe, shop

SCHEMA = "shop_load"


@pytest.fixture
def stack() -> Iterator[ComposeStack]:
    if reason := why_not():
        pytest.skip(reason)
    stack = ComposeStack("load")
    stack.compose("build")
    yield stack
    stack.compose("down", "--volumes")


async def orders(source: Server) -> int:
    connection = await shop.connect(source)
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"SELECT MAX(id) FROM {SCHEMA}.orders")
        return (await cursor.fetchone())[0] or 0


async def test_the_lake_equals_the_database_before_and_after_a_restart(stack: ComposeStack, tmp_path: Path) -> None:
    seen = 0
    for start in ("first", "second"):
        stack.compose("up", "--wait", "--wait-timeout", "600")

        async def written(seen: int = seen) -> bool:
            return await orders(stack.source) >= seen + 200

        await eventually(written)
        stack.compose("stop", "load")
        seen = await orders(stack.source)
        await observe.until_published(stack.source, stack)
        await observe.until_in_lake(stack)
        lake = stack.copy_lake(tmp_path / start)
        found = [await compare.compare(stack.source, lake, table, SCHEMA) for table in shop.TABLES]
        found += [await compare.compare(stack.source, lake, table) for table in ("customers", "orders")]
        assert [comparison.table for comparison in found if not comparison.equal] == []
        assert all(comparison.rows for comparison in found)
        stack.compose("down")
