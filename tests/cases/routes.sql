-- The first matching rule of an output applies. Rules omit, rename, mask and shorten columns, and filter rows.
-- show: key
-- omit: table
-- route: {match: [shop.users], format: maxwell-json, columns: {exclude: [password]}, hash: [mail], mask: [name], where: [{column: active, equals: 1}]}
-- route: {match: [shop.log], output: maxwell-json, drop: true}
-- route: {format: maxwell-json, topic: others, rename: {n: number}, truncate: {line: 3}}

CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(20), mail VARCHAR(40), password VARCHAR(20), active INT);

CREATE TABLE log (line TEXT);

CREATE TABLE more (n INT PRIMARY KEY, line VARCHAR(20));

INSERT INTO users VALUES (1, 'Anne', 'a@example.org', 'secret', 1), (2, 'Bob', 'b@example.org', 'secret', 0);
-- maxwell-json -> {"pk.id": 1} {"type": "insert", "commit": true, "data": {"id": 1, "name": "***",
--    "mail": "7b83143251e3da2cb6e28fe732f5a4bed0b23322bca16b2064203e5427d9ce01", "active": 1}}

UPDATE users SET active = 1 - active;
-- maxwell-json -> {"pk.id": 1} {"type": "delete", "data": {"id": 1, "name": "***",
--    "mail": "7b83143251e3da2cb6e28fe732f5a4bed0b23322bca16b2064203e5427d9ce01", "active": 1}}
-- maxwell-json -> {"pk.id": 2} {"type": "insert", "commit": true, "data": {"id": 2, "name": "***",
--    "mail": "22fd0147731768b0f78871eae81424c6bfb4700d02f001788815ef9acba52fa5", "active": 1}}

INSERT INTO log VALUES ('of no output');

INSERT INTO more VALUES (1, 'a long line');
-- others -> {"pk.number": 1} {"type": "insert", "commit": true, "data": {"number": 1, "line": "a l"}}
