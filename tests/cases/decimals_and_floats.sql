-- Exact and approximate numbers. The text of a DECIMAL has all digits of its scale.
-- omit: Query table
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false, decimal: string}}
-- route: {format: maxwell-json}

CREATE TABLE t (price DECIMAL(10,2), tiny DECIMAL(20,18) UNSIGNED, f FLOAT, d DOUBLE);
-- databus -> {"Action": "create"}

INSERT INTO t VALUES (-99999999.99, 0.000000000000000001, 0.1, 1.7976931348623157e308), (20.5, 1, -3.25e10, 5e-324);
-- databus -> {"Action": "insert", "Rows": [["-99999999.99", "0.000000000000000001", "0.1", "1.7976931348623157e308"],
--    ["20.50", "1.000000000000000000", "-32500000000", "5e-324"]]}
-- debezium-json -> {"before": null, "after": {"price": "-99999999.99", "tiny": "0.000000000000000001", "f": 0.1,
--    "d": 1.7976931348623157e308}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"price": "20.50", "tiny": "1.000000000000000000", "f": -32500000000.0,
--    "d": 5e-324}, "op": "c"}
-- maxwell-json -> {"type": "insert", "data": {"price": -99999999.99, "tiny": 0.000000000000000001, "f": 0.1,
--    "d": 1.7976931348623157e308}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"price": 20.50, "tiny": 1.000000000000000000,
--    "f": -32500000000, "d": 5e-324}}
