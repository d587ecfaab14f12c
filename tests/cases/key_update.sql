-- An UPDATE of the primary key: a delete and a create in Debezium's messages; Maxwell's message has the new key.
-- show: key
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}
-- omit: table

CREATE TABLE orders (customer INT, number INT, state VARCHAR(10), PRIMARY KEY (number, customer));

INSERT INTO orders VALUES (10, 1, 'new');
-- debezium-json -> {"number": 1, "customer": 10} {"before": null, "after": {"customer": 10, "number": 1,
--    "state": "new"}, "op": "c"}
-- maxwell-json -> {"pk.number": 1, "pk.customer": 10} {"type": "insert", "commit": true, "data": {"customer": 10,
--    "number": 1, "state": "new"}}

UPDATE orders SET number = 2 WHERE number = 1;
-- debezium-json -> {"number": 1, "customer": 10} {"before": {"customer": 10, "number": 1, "state": "new"},
--    "after": null, "op": "d"}
-- debezium-json -> {"number": 1, "customer": 10} null
-- debezium-json -> {"number": 2, "customer": 10} {"before": null, "after": {"customer": 10, "number": 2,
--    "state": "new"}, "op": "c"}
-- maxwell-json -> {"pk.number": 2, "pk.customer": 10} {"type": "update", "commit": true, "data": {"customer": 10,
--    "number": 2, "state": "new"}, "old": {"number": 1}}

UPDATE orders SET state = 'paid' WHERE number = 2;
-- debezium-json -> {"number": 2, "customer": 10} {"before": {"customer": 10, "number": 2, "state": "new"},
--    "after": {"customer": 10, "number": 2, "state": "paid"}, "op": "u"}
-- maxwell-json -> {"pk.number": 2, "pk.customer": 10} {"type": "update", "commit": true, "data": {"customer": 10,
--    "number": 2, "state": "paid"}, "old": {"state": "new"}}

DELETE FROM orders;
-- debezium-json -> {"number": 2, "customer": 10} {"before": {"customer": 10, "number": 2, "state": "paid"},
--    "after": null, "op": "d"}
-- debezium-json -> {"number": 2, "customer": 10} null
-- maxwell-json -> {"pk.number": 2, "pk.customer": 10} {"type": "delete", "commit": true, "data": {"customer": 10,
--    "number": 2, "state": "paid"}}
