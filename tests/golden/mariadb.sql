-- The statements for MariaDB only.
CREATE TABLE shop.own (id INT PRIMARY KEY, u UUID, i4 INET4, i6 INET6, packed TEXT COMPRESSED)
INSERT INTO shop.own VALUES (1, '123e4567-e89b-12d3-a456-426655440000', '192.168.0.1', '::1', 'packed'), (2, '00000000-0000-0000-0000-000000000000', '0.0.0.0', '::', ''), (3, NULL, NULL, NULL, NULL), (4, 'ffffffff-ffff-ffff-ffff-ffffffffffff', '255.255.255.255', 'ff00::', REPEAT('x', 200))
UPDATE shop.own SET u = '123e4567-e89b-12d3-a456-426655442020' WHERE id = 1
