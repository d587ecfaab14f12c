-- How a table's definition changes, as format databus has it.
-- show: Table
-- omit: Query Table.Schema Table.Indexes Table.PKColumns
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- mariadb: -> {"Table": {"Name": "t", "Columns": [{"Name": "id", "Type": 1, "RawType": "int(11)", "IsAuto": false,
--    "EnumValues": null, "SetValues": null}]}, "Action": "create"}
-- mysql: -> {"Table": {"Name": "t", "Columns": [{"Name": "id", "Type": 1, "RawType": "int", "IsAuto": false,
--    "EnumValues": null, "SetValues": null}]}, "Action": "create"}

ALTER TABLE t ADD e ENUM('a','b') NOT NULL FIRST;
-- mariadb: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')",
--    "IsAuto": false, "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "id", "Type": 1, "RawType": "int(11)",
--    "IsAuto": false, "EnumValues": null, "SetValues": null}]}, "Action": "alter"}
-- mysql: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')", "IsAuto": false,
--    "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "id", "Type": 1, "RawType": "int", "IsAuto": false,
--    "EnumValues": null, "SetValues": null}]}, "Action": "alter"}

ALTER TABLE t CHANGE id number BIGINT UNSIGNED AUTO_INCREMENT;
-- mariadb: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')",
--    "IsAuto": false, "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "number", "Type": 1,
--    "RawType": "bigint(20) unsigned", "IsAuto": true, "EnumValues": null, "SetValues": null}]}, "Action": "alter"}
-- mysql: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')", "IsAuto": false,
--    "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "number", "Type": 1, "RawType": "bigint unsigned",
--    "IsAuto": true, "EnumValues": null, "SetValues": null}]}, "Action": "alter"}

INSERT INTO t (e) VALUES ('b');
-- mariadb: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')",
--    "IsAuto": false, "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "number", "Type": 1,
--    "RawType": "bigint(20) unsigned", "IsAuto": true, "EnumValues": null, "SetValues": null}]}, "Action": "insert",
--    "Rows": [["2", "1"]]}
-- mysql: -> {"Table": {"Name": "t", "Columns": [{"Name": "e", "Type": 3, "RawType": "enum('a','b')", "IsAuto": false,
--    "EnumValues": ["a", "b"], "SetValues": null}, {"Name": "number", "Type": 1, "RawType": "bigint unsigned",
--    "IsAuto": true, "EnumValues": null, "SetValues": null}]}, "Action": "insert", "Rows": [["2", "1"]]}
