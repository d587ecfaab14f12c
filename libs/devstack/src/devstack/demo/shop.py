"""A sample shop and the load on it: every kind of change, in transactions of one row and of many."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import asyncmy

from devstack.server import Server

SCHEMA = "shop"
TABLES = ("customers", "products", "orders", "order_lines")

_DEFINITIONS = f"""
CREATE OR REPLACE DATABASE {SCHEMA} CHARACTER SET utf8mb4;
USE {SCHEMA};
CREATE TABLE customers (
  id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(100) NOT NULL,
  email VARCHAR(255) NOT NULL,
  credit DECIMAL(12,2) NULL,
  preferences JSON NULL,
  notes TEXT NULL,
  created DATETIME(6) NOT NULL,
  UNIQUE KEY email (email)
);
CREATE TABLE products (
  id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  sku CHAR(12) NOT NULL,
  title VARCHAR(200) NOT NULL,
  kind ENUM('book','toy','tool''s') NOT NULL,
  price DECIMAL(10,2) UNSIGNED NOT NULL,
  weight DOUBLE NULL,
  stock INT NOT NULL,
  picture BLOB NULL
);
CREATE TABLE orders (
  id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  customer_id BIGINT UNSIGNED NOT NULL,
  status ENUM('new','paid','shipped') NOT NULL DEFAULT 'new',
  total DECIMAL(14,2) NOT NULL,
  placed DATETIME(6) NOT NULL,
  shipped TIMESTAMP NULL
);
CREATE TABLE order_lines (
  order_id BIGINT UNSIGNED NOT NULL,
  line SMALLINT UNSIGNED NOT NULL,
  product_id INT UNSIGNED NOT NULL,
  quantity TINYINT UNSIGNED NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, line)
)"""

_PRODUCTS = 60
_NAMES = ("Anne", "Zoë", "李雷", "Jürgen", "O'Neil", "नेहा", "🦊 Fox", "Sørensen", "back\\slash", "Ада")


async def connect(server: Server) -> Any:
    """Log in for statements that are committed by themselves."""
    return await asyncmy.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        charset="utf8mb4",
    )


async def exists(server: Server) -> bool:
    """Say whether the shop is there."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        return bool(await cursor.execute("SHOW DATABASES LIKE %s", (SCHEMA,)))


async def create(server: Server) -> None:
    """Create the shop anew, with products and a few customers."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        for statement in _DEFINITIONS.split(";\n"):
            await cursor.execute(statement)
        rng = random.Random(1)
        for number in range(_PRODUCTS):
            picture = None if number % 3 else rng.randbytes(200)
            title, weight = f"{rng.choice(_NAMES)}'s “thing” {number}", rng.uniform(0, 50) if number % 4 else None
            await cursor.execute(
                f"INSERT INTO {SCHEMA}.products (sku, title, kind, price, weight, stock, picture)"
                " VALUES (%s, %s, %s, %s, %s, 1000000, %s)",
                (f"SKU{number:05}", title, rng.randint(1, 3), rng.randint(1, 99999) / 100, weight, picture),
            )


@dataclass
class Load:
    """One customer of the database: a seeded series of transactions over a connection of its own."""

    server: Server
    seed: int
    customers: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    #: row changes committed so far
    changes: int = 0
    transactions: int = 0

    async def run(self, transactions: int, calm: asyncio.Event, done: Callable[[], None]) -> None:
        """Commit at least this many transactions, and more until it is `calm`; `done` is called after each."""
        connection = await connect(self.server)
        self._random = random.Random(self.seed)
        async with connection, connection.cursor() as cursor:
            await cursor.execute(f"USE {SCHEMA}")
            # Without gap locks, and with products in order, two loads cannot deadlock.
            await cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            while self.transactions < transactions or not calm.is_set():
                await cursor.execute("BEGIN")
                changed = await self._step(cursor)
                await cursor.execute("COMMIT")
                self.changes += changed
                self.transactions += 1
                done()

    async def _step(self, cursor: Any) -> int:
        """Do one transaction's work and count its row changes."""
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
        name, now = self._random.choice(_NAMES), datetime.now(UTC).replace(tzinfo=None)
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
        products = sorted(self._random.sample(range(1, _PRODUCTS + 1), count))
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
        """Change a customer, move an order's lines to other keys, or remove a customer."""
        customer = self._random.choice(self.customers)
        match self._random.randrange(3):
            case 0:
                statement, key = (
                    "UPDATE customers SET notes = MD5(RAND()), credit = ROUND(credit / 3, 2) WHERE id = %s",
                    customer,
                )
            case 1:
                key = self._random.choice(self.orders)
                statement = "UPDATE order_lines SET line = line + 100 WHERE order_id = %s AND line < 100"
            case _:
                self.customers.remove(customer)
                statement, key = "DELETE FROM customers WHERE id = %s", customer
        return int(await cursor.execute(statement, (key,)))


async def alter(server: Server) -> None:
    """Add a column while the load runs, and use it."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"ALTER TABLE {SCHEMA}.orders ADD COLUMN coupon VARCHAR(20) NULL AFTER status")
        await cursor.execute(f"UPDATE {SCHEMA}.orders SET coupon = CONCAT('C', id) WHERE id % 3 = 0")
