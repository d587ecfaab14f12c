-- BIGINT UNSIGNED in Debezium's mode `precise`: big-endian bytes in base64.
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false, bigint_unsigned: precise}}

CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY);

INSERT INTO t VALUES (0), (9223372036854775808), (18446744073709551615);
-- -> {"before": null, "after": {"id": "AA=="}, "op": "c"}
-- -> {"before": null, "after": {"id": "AIAAAAAAAAAA"}, "op": "c"}
-- -> {"before": null, "after": {"id": "AP//////////"}, "op": "c"}
