-- Text arrives as UTF-8, whatever the column's character set.
-- omit: Query sql pkNames old isDdl table
-- route: {format: databus}
-- route: {format: canal-json}

CREATE TABLE t (id INT, latin VARCHAR(20) CHARACTER SET latin1, chinese VARCHAR(20) CHARACTER SET gbk,
  wide CHAR(4) CHARACTER SET utf16, x VARCHAR(20)) CHARACTER SET utf8mb4;
-- databus -> {"Action": "create"}
-- canal-json -> {"data": null, "type": "CREATE"}

INSERT INTO t VALUES (1, 'é ÿ', '你好', '東京', 'naïve 😀'), (2, '', '', '', 'a "quote" \\ and	tab');
-- databus -> {"Action": "insert", "Rows": [["1", "é ÿ", "你好", "東京", "naïve 😀"], ["2", "", "", "",
--    "a \"quote\" \\ and\ttab"]]}
-- canal-json -> {"data": [{"id": "1", "latin": "é ÿ", "chinese": "你好", "wide": "東京", "x": "naïve 😀"}, {"id": "2",
--    "latin": "", "chinese": "", "wide": "", "x": "a \"quote\" \\ and\ttab"}], "type": "INSERT"}

ALTER TABLE t MODIFY latin VARCHAR(20) CHARACTER SET greek;
-- databus -> {"Action": "alter"}
-- canal-json -> {"data": null, "type": "ALTER"}

UPDATE t SET latin = 'αβγ' WHERE id = 2;
-- databus -> {"Action": "update", "Rows": [["2", "", "", "", "a \"quote\" \\ and\ttab"], ["2", "αβγ", "", "",
--    "a \"quote\" \\ and\ttab"]]}
-- canal-json -> {"data": [{"id": "2", "latin": "αβγ", "chinese": "", "wide": "", "x": "a \"quote\" \\ and\ttab"}],
--    "type": "UPDATE"}
