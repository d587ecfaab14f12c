-- The statements for both servers, one a line. The first table has every type that both servers have.
CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
CREATE TABLE shop.types (id BIGINT UNSIGNED PRIMARY KEY, i8 TINYINT, u8 TINYINT UNSIGNED, i16 SMALLINT, u16 SMALLINT UNSIGNED, i24 MEDIUMINT, u24 MEDIUMINT UNSIGNED, i32 INT, u32 INT UNSIGNED, i64 BIGINT, u64 BIGINT UNSIGNED, flag BOOLEAN, dec10 DECIMAL(10,2), dec65 DECIMAL(65,30), f FLOAT, d DOUBLE, b1 BIT(1), b9 BIT(9), b64 BIT(64), y YEAR, da DATE, t0 TIME, t3 TIME(3), t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL, c CHAR(10), vc VARCHAR(60), latin VARCHAR(20) CHARACTER SET latin1, chinese VARCHAR(20) CHARACTER SET gbk, ttx TINYTEXT, tx TEXT, mtx MEDIUMTEXT, ltx LONGTEXT, bn BINARY(4), vb VARBINARY(8), tbl TINYBLOB, bl BLOB, mbl MEDIUMBLOB, lbl LONGBLOB, en ENUM('a','b,c','d''e','ß'), st SET('x','y','z w','é'), js JSON, g GEOMETRY, p POINT)
INSERT INTO shop.types VALUES (0, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, FALSE, -99999999.99, -99999999999999999999999999999999999.999999999999999999999999999999, -3.25e10, -1.7976931348623157e308, b'0', b'000000001', 1, 1901, '1000-01-01', '-838:59:59', '-838:59:58.999', '-00:00:00.000001', '1000-01-01 00:00:00', '1000-01-01 00:00:00.001', '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001', '', '', '', '', '', '', '', '', x'00', x'', x'', x'', x'', x'', 'a', 'x', '{}', ST_GeomFromText('LINESTRING(0 0,1 1)'), ST_GeomFromText('POINT(-1.5 1e300)'))
INSERT INTO shop.types VALUES (18446744073709551615, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, TRUE, 99999999.99, 99999999999999999999999999999999999.999999999999999999999999999999, 1e-30, 5e-324, b'1', b'111111111', 18446744073709551615, 2155, '9999-12-31', '838:59:59', '838:59:58.999', '23:59:59.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999', 'zzzzzzzzzz', 'naïve 東京 😀', 'é ÿ', '你好', 'ttx 😀', 'text', 'medium', 'long', x'ffffffff', x'8000ff0a', x'00', x'00ff10', x'ff', x'fe', 'ß', 'x,y,z w,é', '[1, 2.5, null, true, "é"]', ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('POINT(1 2)', 4326))
INSERT INTO shop.types (id) VALUES (3)
INSERT INTO shop.types VALUES (4, -1, 1, -1, 1, -1, 1, -1, 1, -1, 9223372036854775808, TRUE, -0.01, 0.000000000000000000000000000001, 0.1, 0.1, b'1', b'100000000', 9223372036854775808, 0, '0000-00-00', '-01:00:00', '24:00:00.5', '12:34:56.78', '0000-00-00 00:00:00', '2021-00-00 00:00:00', '2024-02-29 12:34:56.5', '0000-00-00 00:00:00', '2000-02-29 23:59:59.98', 'it''s', 'quote '' double " back \\ tab	line\nend <&>', '\\''', '字', '%', '  two  ', ' ', '\r', x'0100', x'0100', x'27', x'5c', x'0a', x'20', 'not one of them', '', '"text"', ST_GeomFromText('POLYGON((0 0,0 3,3 3,3 0,0 0),(1 1,1 2,2 2,2 1,1 1))'), ST_GeomFromText('POINT(0 0)'))
INSERT INTO shop.types VALUES (5, 5, 200, 500, 60000, 500000, 16000000, 5, 3000000000, 5, 5, FALSE, 19.99, 1.5, 1.5, 1e20, b'0', 5, 5, 2021, '2021-02-03', '04:05:06', '04:05:06.789', '04:05:06.789012', '2021-02-03 04:05:06', '2021-02-03 04:05:06.789', '2021-02-03 04:05:06.789012', '2021-02-03 04:05:06', '2021-02-03 04:05:06.789012', 'char', 'varchar', 'café', '客户', 'tiny', 'texté', 'medium', 'long', x'01020304', x'0102', x'01', x'02', x'03', x'04', 'b,c', 'x,z w', '{"b": 1, "aa": {"k": [1, 2]}}', ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'), ST_GeomFromText('POINT(1.5 -2.5)'))
UPDATE shop.types SET i8 = -5, u64 = 18446744073709551614, dec10 = 20.50, f = -1.5, b9 = 6, t6 = '-12:34:56.78', dt6 = '2021-02-03 04:05:07', ts0 = NULL, vc = NULL, bl = x'00ff', en = 'd\'e', st = 'é', js = '[]' WHERE id = 5
UPDATE shop.types SET i32 = 1, vc = 'set', js = '1', en = 'a' WHERE id = 3
DELETE FROM shop.types WHERE id = 4
CREATE TABLE shop.items (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2) NOT NULL, icon BLOB, at DATETIME, KEY by_name (name))
CREATE TABLE shop.orders (customer INT NOT NULL, number INT NOT NULL, state ENUM('new','paid','sent') NOT NULL, PRIMARY KEY (number, customer))
CREATE TABLE shop.log (line VARCHAR(40))
INSERT INTO shop.items VALUES (1, 'Anne', 19.99, NULL, '2021-02-03 04:05:06')
UPDATE shop.items SET name = NULL, price = 20.5, icon = x'00ff10' WHERE id = 1
DELETE FROM shop.items WHERE id = 1
ALTER TABLE shop.items ADD COLUMN stock INT NOT NULL DEFAULT 0 AFTER name
BEGIN
INSERT INTO shop.items VALUES (2, 'tea', 5, 1.25, x'01', NULL), (3, 'coffee', 7, 3.5, NULL, '2021-02-03 04:05:06')
INSERT INTO shop.orders VALUES (10, 1, 'new')
UPDATE shop.items SET stock = stock - 1
UPDATE shop.orders SET state = 'paid' WHERE number = 1
UPDATE shop.orders SET number = 2 WHERE number = 1
INSERT INTO shop.log VALUES ('sold'), ('sold')
DELETE FROM shop.items WHERE id = 3
COMMIT
CREATE INDEX by_price ON shop.items (price)
RENAME TABLE shop.log TO shop.journal
TRUNCATE TABLE shop.journal
DROP TABLE shop.journal
