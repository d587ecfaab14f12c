"""The load on the shop: every kind of change, in transactions of one row and of many."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from devstack.demo.shop import NAMES, PRODUCTS, SCHEMA, connect
from devstack.server import Server


@dataclass
class Load:
    """A database client that commits random transactions on its own connection."""

    server: Server
    #: seed of the random generator; different for each load
    seed: int
    #: the shop's schema
    schema: str = SCHEMA
    #: seconds between two transactions
    pause: float = 0
    #: ids of the customers that this load has inserted and not deleted
    customers: list[int] = field(default_factory=list)
    #: ids of the orders that this load has inserted and not deleted
    orders: list[int] = field(default_factory=list)
    #: row changes committed so far
    changes: int = 0
    #: transactions committed so far
    transactions: int = 0

    async def run(self, transactions: int, may_end: asyncio.Event, on_commit: Callable[[], None]) -> None:
        """Commit at least this many transactions, and continue until `may_end` is set; call `on_commit` after each."""
        connection = await connect(self.server)
        self._random = random.Random(self.seed)
        async with connection, connection.cursor() as cursor:
            await cursor.execute(f"USE {self.schema}")
            # Without gap locks, and with products updated in order, two loads cannot deadlock.
            await cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            while self.transactions < transactions or not may_end.is_set():
                await cursor.execute("BEGIN")
                changed = await self._step(cursor)
                await cursor.execute("COMMIT")
                self.changes += changed
                self.transactions += 1
                on_commit()
                if self.pause:
                    await asyncio.sleep(self.pause)

    async def _step(self, cursor: Any) -> int:
        """Run the statements of one transaction and return the number of changed rows."""
        chance = self._random.random()
        if len(self.customers) < 5 or chance < 0.15:
            return await self._register(cursor)
        if not self.orders or chance < 0.5:
            return await self._order(cursor)
        if chance < 0.75:
            return await self._ship(cursor)
        if chance < 0.85:
            return await self._cancel(cursor)
        return await self._edit(cursor)

    async def _register(self, cursor: Any) -> int:
        name, now = self._random.choice(NAMES), datetime.now(UTC).replace(tzinfo=None)
        await cursor.execute(
            "INSERT INTO customers (name, email, credit, preferences, notes, created) VALUES (%s, %s, %s, %s, %s, %s)",
            (name, f"{self.seed}.{len(self.customers)}.{self._random.getrandbits(40):x}@example.org",
             self._random.choice((None, "0.00", "-12.50", "9999999999.99")), '{"news": true, "tags": ["a", "ü"]}',
             self._random.choice((None, "", "two\nlines\twith 'quotes'")), now),
        )  # fmt: skip
        self.customers.append(cursor.lastrowid)
        return 1

    async def _order(self, cursor: Any) -> int:
        customer, count = self._random.choice(self.customers), self._random.randint(1, 6)
        await cursor.execute(
            "INSERT INTO orders (customer_id, total, placed) VALUES (%s, %s, NOW(6))",
            (customer, f"{self._random.randint(100, 999_999) / 100:.2f}"),
        )
        order = cursor.lastrowid
        products = sorted(self._random.sample(range(1, PRODUCTS + 1), count))
        lines = [
            (order, line, product, self._random.randint(1, 200), "9.99") for line, product in enumerate(products, 1)
        ]
        await cursor.executemany("INSERT INTO order_lines VALUES (%s, %s, %s, %s, %s)", lines)
        for product in products:
            await cursor.execute("UPDATE products SET stock = stock - 1 WHERE id = %s", (product,))
        self.orders.append(order)
        return 1 + 2 * count

    async def _ship(self, cursor: Any) -> int:
        statement = "UPDATE orders SET status = 3, shipped = NOW(), total = total + 0.01 WHERE id = %s"
        return int(await cursor.execute(statement, (self._random.choice(self.orders),)))

    async def _cancel(self, cursor: Any) -> int:
        order = self.orders.pop(self._random.randrange(len(self.orders)))
        lines = await cursor.execute("DELETE FROM order_lines WHERE order_id = %s", (order,))
        return int(lines) + int(await cursor.execute("DELETE FROM orders WHERE id = %s", (order,)))

    async def _edit(self, cursor: Any) -> int:
        """Change a customer, change the keys of an order's lines, or delete a customer."""
        key = self._random.choice(self.customers)
        match self._random.randrange(3):
            case 0:
                statement = "UPDATE customers SET notes = UUID(), credit = ROUND(credit / 3, 2) WHERE id = %s"
            case 1:
                key = self._random.choice(self.orders)
                statement = "UPDATE order_lines SET line = line + 100 WHERE order_id = %s AND line < 100"
            case _:
                self.customers.remove(key)
                statement = "DELETE FROM customers WHERE id = %s"
        return int(await cursor.execute(statement, (key,)))
