-- A unique key in which different rows may have the same published values is no record key, and chooses no partition.
-- partitions: 3
-- show: key
-- route: {format: debezium-json, partition_by: primary_key, mask: [email], options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: debezium-json, partition_by: primary_key, hash: [email], output: hashed, topic: hashed, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: debezium-json, partition_by: primary_key, columns: {exclude: [email]}, output: without, topic: without, options: {schemas_enable: false, include_schema_changes: false}}

CREATE TABLE u (email VARCHAR(40) NOT NULL UNIQUE, v INT);

INSERT INTO u VALUES ('a', 1), ('b', 2);
-- debezium-json/1 -> null {"before": null, "after": {"email": "***", "v": 1}, "op": "c"}
-- debezium-json/1 -> null {"before": null, "after": {"email": "***", "v": 2}, "op": "c"}
-- hashed/2 -> {"email": "de9b03ae7d1a7c00a719d382823c5b564d5236e1a9bfadb74c78e096ad8ba16f"} {"before": null,
--    "after": {"email": "de9b03ae7d1a7c00a719d382823c5b564d5236e1a9bfadb74c78e096ad8ba16f", "v": 1}, "op": "c"}
-- hashed/1 -> {"email": "233abc82fd466365fcc527c46cdd7ba4cce4548bbc5531ec65f13ecb25f8f136"} {"before": null,
--    "after": {"email": "233abc82fd466365fcc527c46cdd7ba4cce4548bbc5531ec65f13ecb25f8f136", "v": 2}, "op": "c"}
-- without/1 -> null {"before": null, "after": {"v": 1}, "op": "c"}
-- without/1 -> null {"before": null, "after": {"v": 2}, "op": "c"}

ALTER TABLE u MODIFY v INT NOT NULL, ADD UNIQUE (v);

INSERT INTO u VALUES ('c', 3), ('d', 7);
-- debezium-json/1 -> {"v": 3} {"before": null, "after": {"email": "***", "v": 3}, "op": "c"}
-- debezium-json/0 -> {"v": 7} {"before": null, "after": {"email": "***", "v": 7}, "op": "c"}
-- hashed/0 -> {"email": "ba493e851cdf71407e874983594aab23cfbdbcef437d056f28cb18eb3d5c2e26"} {"before": null,
--    "after": {"email": "ba493e851cdf71407e874983594aab23cfbdbcef437d056f28cb18eb3d5c2e26", "v": 3}, "op": "c"}
-- hashed/0 -> {"email": "1a1e511944cf7cc1c606eba08fe840927f698438f7ec580b387ef1b54bac8499"} {"before": null,
--    "after": {"email": "1a1e511944cf7cc1c606eba08fe840927f698438f7ec580b387ef1b54bac8499", "v": 7}, "op": "c"}
-- without/1 -> {"v": 3} {"before": null, "after": {"v": 3}, "op": "c"}
-- without/0 -> {"v": 7} {"before": null, "after": {"v": 7}, "op": "c"}
