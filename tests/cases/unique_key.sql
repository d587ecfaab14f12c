-- Without a primary key, Debezium's record key is the unique key by which the server identifies rows. In all other
-- formats such a table has no key.
-- show: key PKColumns Table
-- omit: Action Pos Table.Schema Table.Name Table.Columns Rows Query data old sql database _uuid primary_key type commit
-- route: {format: databus}
-- route: {format: canal-json}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json, options: {output_primary_key_columns: true}}

CREATE TABLE uk (a INT NOT NULL, b VARCHAR(10) NOT NULL, c INT, UNIQUE KEY (a, b), KEY (c));
-- databus -> {} {"Table": {"Indexes": [{"Name": "a", "Columns": ["a", "b"], "Cardinality": [1, 2]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": true, "pkNames": null, "table": "uk"}

INSERT INTO uk VALUES (1, 'x', NULL);
-- databus -> {} {"Table": {"Indexes": [{"Name": "a", "Columns": ["a", "b"], "Cardinality": [1, 2]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": false, "pkNames": null, "table": "uk"}
-- debezium-json -> {"a": 1, "b": "x"} {"before": null, "after": {"a": 1, "b": "x", "c": null}, "op": "c"}
-- maxwell-json -> {"table": "uk"} {"table": "uk", "primary_key_columns": []}

CREATE UNIQUE INDEX later ON uk (b);

DELETE FROM uk;
-- databus -> {} {"Table": {"Indexes": [{"Name": "a", "Columns": ["a", "b"], "Cardinality": [1, 2]}, {"Name": "later",
--    "Columns": ["b"], "Cardinality": [1]}, {"Name": "c", "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": false, "pkNames": null, "table": "uk"}
-- debezium-json -> {"a": 1, "b": "x"} {"before": {"a": 1, "b": "x", "c": null}, "after": null, "op": "d"}
-- debezium-json -> {"a": 1, "b": "x"} null
-- maxwell-json -> {"table": "uk"} {"table": "uk", "primary_key_columns": []}

ALTER TABLE uk DROP KEY a;
-- databus -> {} {"Table": {"Indexes": [{"Name": "later", "Columns": ["b"], "Cardinality": [1]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": true, "pkNames": null, "table": "uk"}

INSERT INTO uk VALUES (3, 'y', NULL);
-- databus -> {} {"Table": {"Indexes": [{"Name": "later", "Columns": ["b"], "Cardinality": [1]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": false, "pkNames": null, "table": "uk"}
-- debezium-json -> {"b": "y"} {"before": null, "after": {"a": 3, "b": "y", "c": null}, "op": "c"}
-- maxwell-json -> {"table": "uk"} {"table": "uk", "primary_key_columns": []}

ALTER TABLE uk ADD PRIMARY KEY (a);
-- databus -> {} {"Table": {"Indexes": [{"Name": "PRIMARY", "Columns": ["a"], "Cardinality": [1]}, {"Name": "later",
--    "Columns": ["b"], "Cardinality": [1]}, {"Name": "c", "Columns": ["c"], "Cardinality": [1]}], "PKColumns": [0]}}
-- canal-json -> null {"isDdl": true, "pkNames": null, "table": "uk"}

INSERT INTO uk VALUES (4, 'z', NULL);
-- databus -> {} {"Table": {"Indexes": [{"Name": "PRIMARY", "Columns": ["a"], "Cardinality": [1]}, {"Name": "later",
--    "Columns": ["b"], "Cardinality": [1]}, {"Name": "c", "Columns": ["c"], "Cardinality": [1]}], "PKColumns": [0]}}
-- canal-json -> null {"isDdl": false, "pkNames": ["a"], "table": "uk"}
-- debezium-json -> {"a": 4} {"before": null, "after": {"a": 4, "b": "z", "c": null}, "op": "c"}
-- maxwell-json -> {"table": "uk", "pk.a": 4} {"table": "uk", "primary_key_columns": ["a"]}

ALTER TABLE uk DROP PRIMARY KEY, MODIFY b VARCHAR(10) NULL;
-- databus -> {} {"Table": {"Indexes": [{"Name": "later", "Columns": ["b"], "Cardinality": [1]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": true, "pkNames": null, "table": "uk"}

INSERT INTO uk VALUES (5, NULL, NULL);
-- databus -> {} {"Table": {"Indexes": [{"Name": "later", "Columns": ["b"], "Cardinality": [1]}, {"Name": "c",
--    "Columns": ["c"], "Cardinality": [1]}], "PKColumns": null}}
-- canal-json -> null {"isDdl": false, "pkNames": null, "table": "uk"}
-- debezium-json -> null {"before": null, "after": {"a": 5, "b": null, "c": null}, "op": "c"}
-- maxwell-json -> {"table": "uk"} {"table": "uk", "primary_key_columns": []}
