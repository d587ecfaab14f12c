-- Bytes are base64 in most formats, characters of ISO 8859-1 in canal's. BINARY is padded with zero bytes.
-- omit: sql pkNames old isDdl table
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: canal-json}
-- route: {format: maxwell-json}

CREATE TABLE t (b BINARY(4), vb VARBINARY(8), bl BLOB, tx TEXT);
-- canal-json -> {"data": null, "type": "CREATE"}

INSERT INTO t VALUES (x'01', x'e900ff', x'00ff10', 'text'), (x'', x'', x'', '');
-- debezium-json -> {"before": null, "after": {"b": "AQAAAA==", "vb": "6QD/", "bl": "AP8Q", "tx": "text"}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"b": "AAAAAA==", "vb": "", "bl": "", "tx": ""}, "op": "c"}
-- canal-json -> {"data": [{"b": "\u0001\u0000\u0000\u0000", "vb": "é\u0000ÿ", "bl": "\u0000ÿ\u0010", "tx": "text"},
--    {"b": "\u0000\u0000\u0000\u0000", "vb": "", "bl": "", "tx": ""}], "type": "INSERT"}
-- maxwell-json -> {"type": "insert", "data": {"b": "AQAAAA==", "vb": "6QD/", "bl": "AP8Q", "tx": "text"}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"b": "AAAAAA==", "vb": "", "bl": "", "tx": ""}}
