-- Types that only MariaDB has.
-- servers: mariadb
-- omit: Query table
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (u UUID, i4 INET4, i6 INET6);

INSERT INTO t VALUES ('123e4567-e89b-12d3-a456-426655440000', '192.168.0.1', '::1'), (NULL, NULL, NULL);
-- debezium-json -> {"before": null, "after": {"u": "123e4567-e89b-12d3-a456-426655440000", "i4": "192.168.0.1",
--    "i6": "::1"}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"u": null, "i4": null, "i6": null}, "op": "c"}
-- maxwell-json -> {"type": "insert", "data": {"u": "123e4567-e89b-12d3-a456-426655440000", "i4": "192.168.0.1",
--    "i6": "::1"}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"u": null, "i4": null, "i6": null}}
