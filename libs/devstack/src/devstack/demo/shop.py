"""The sample shop: its tables and first rows."""

import random
from typing import Any

import asyncmy

from devstack.server import Server

SCHEMA = "shop"
TABLES = ("customers", "products", "orders", "order_lines")

_DEFINITIONS = """
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

PRODUCTS = 60
NAMES = ("Anne", "Zoë", "李雷", "Jürgen", "O'Neil", "नेहा", "🦊 Fox", "Sørensen", "back\\slash", "Ада")


async def connect(server: Server) -> Any:
    """Log in, with autocommit."""
    return await asyncmy.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        autocommit=True,
        charset="utf8mb4",
    )


async def exists(server: Server, schema: str = SCHEMA) -> bool:
    """Return whether the shop exists."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        return bool(await cursor.execute("SHOW DATABASES LIKE %s", (schema,)))


async def create(server: Server, schema: str = SCHEMA) -> None:
    """Create the shop with its products, in place of an existing shop."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
        await cursor.execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
        await cursor.execute(f"USE {schema}")
        for statement in _DEFINITIONS.split(";\n"):
            await cursor.execute(statement)
        rng = random.Random(1)
        for number in range(PRODUCTS):
            picture = None if number % 3 else rng.randbytes(200)
            title, weight = f"{rng.choice(NAMES)}'s “thing” {number}", rng.uniform(0, 50) if number % 4 else None
            await cursor.execute(
                "INSERT INTO products (sku, title, kind, price, weight, stock, picture)"
                " VALUES (%s, %s, %s, %s, %s, 1000000, %s)",
                (f"SKU{number:05}", title, rng.randint(1, 3), rng.randint(1, 99999) / 100, weight, picture),
            )


async def alter(server: Server) -> None:
    """Add a column to `orders` and set it in some rows."""
    connection = await connect(server)
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"ALTER TABLE {SCHEMA}.orders ADD COLUMN coupon VARCHAR(20) NULL AFTER status")
        await cursor.execute(f"UPDATE {SCHEMA}.orders SET coupon = CONCAT('C', id) WHERE id % 3 = 0")
