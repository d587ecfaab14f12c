-- Types that only MySQL has, and types of values in its JSON.
-- servers: mysql
-- omit: Query table
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (v VECTOR(3), js JSON);

INSERT INTO t VALUES (STRING_TO_VECTOR('[1,-2.5,0]'), JSON_ARRAY(CAST('2021-02-03' AS DATE), CAST('-01:00' AS TIME), x'00ff'));
-- debezium-json -> {"before": null, "after": {"v": [1.0, -2.5, 0.0],
--    "js": "[\"2021-02-03\",\"-01:00:00.000000\",\"base64:type15:AP8=\"]"}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"v": "AACAPwAAIMAAAAAA", "js": ["2021-02-03",
--    "-01:00:00.000000", "base64:type15:AP8="]}}
