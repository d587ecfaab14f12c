-- The statements for MySQL only.
CREATE TABLE shop.own (id INT PRIMARY KEY, v VECTOR(3), js JSON)
INSERT INTO shop.own VALUES (1, STRING_TO_VECTOR('[1,-2.5,3e38]'), JSON_OBJECT('d', CAST('2021-02-03' AS DATE), 't', CAST('-838:59:58.5' AS TIME(6)), 'n', 1.50, 'u', 18446744073709551615)), (2, NULL, NULL), (3, STRING_TO_VECTOR('[0,0,0]'), 'null')
UPDATE shop.own SET js = JSON_ARRAY(x'00ff', 1e20) WHERE id = 1
