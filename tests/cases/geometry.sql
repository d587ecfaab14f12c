-- Geometries: WKB and SRID in Debezium's messages, WKT in Maxwell's.
-- omit: Query table
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (p POINT, g GEOMETRY);

INSERT INTO t VALUES (ST_GeomFromText('POINT(1 2)', 4326), ST_GeomFromText('LINESTRING(0 0,1 1)')), (NULL, NULL);
-- mariadb: debezium-json -> {"before": null, "after": {"p": {"x": 1.0, "y": 2.0,
--    "wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": 4326}, "g": {"wkb":
--    "AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=", "srid": null}}, "op": "c"}
-- mysql: debezium-json -> {"before": null, "after": {"p": {"x": 2.0, "y": 1.0, "wkb": "AQEAAAAAAAAAAAAAQAAAAAAAAPA/",
--    "srid": 4326}, "g": {"wkb": "AQIAAAACAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAPA/AAAAAAAA8D8=", "srid": null}}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"p": null, "g": null}, "op": "c"}
-- mariadb: maxwell-json -> {"type": "insert", "data": {"p": "POINT (1 2)", "g": "LINESTRING (0 0, 1 1)"}}
-- mysql: maxwell-json -> {"type": "insert", "data": {"p": "POINT (2 1)", "g": "LINESTRING (0 0, 1 1)"}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"p": null, "g": null}}
