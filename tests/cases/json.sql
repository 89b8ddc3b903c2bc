-- Documents with members of SQL types keep them on the follower, which tells rows apart that differ in nothing else.
CREATE DATABASE json;
-- -> {"sequence":0}
USE json;
CREATE TABLE a (id INT PRIMARY KEY, j JSON);
-- -> {"sequence":1}
CREATE TABLE keyless (j JSON);
-- -> {"sequence":2}
INSERT INTO a VALUES (1, '{"a": [1, 1.0, 1e300, "x\\"é", true, null, {}], "": -9223372036854775808}');
-- -> {"sequence":3,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"Json":{"":-9223372036854775808,"a":[1,1.0,1e300,"x\"é",true,null,{}]}}]}]}}}
INSERT INTO a VALUES (2, JSON_OBJECT('price', CAST('-12.50' AS DECIMAL(10,2)), 'on', DATE'1999-03-30', 'list', JSON_ARRAY(1, 'two', NULL, 0.10)));
-- -> {"sequence":4,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2},{"JsonTyped":{"object":{"on":{"Date":{"year":1999,"month":3,"day":30}},"list":{"array":[1,"two",null,{"Decimal":"0.10"}]},"price":{"Decimal":"-12.50"}}}}]}]}}}
INSERT INTO a VALUES (3, JSON_ARRAY(CAST('-12:34:56.789' AS TIME(3)), TIMESTAMP'2024-02-29 12:34:56.000001', CAST(12345678901234567890123456789012345.123456789012345678901234567890 AS DECIMAL(65,30)), CAST(0 AS DECIMAL(1,0)), DATE'9999-12-31'));
-- -> {"sequence":5,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3},{"JsonTyped":{"array":[{"Time":{"negative":true,"hour":12,"minute":34,"second":56,"subsecond":789000}},{"DateTime":{"year":2024,"month":2,"day":29,"hour":12,"minute":34,"second":56,"subsecond":1}},{"Decimal":"12345678901234567890123456789012345.123456789012345678901234567890"},{"Decimal":"0"},{"Date":{"year":9999,"month":12,"day":31}}]}}]}]}}}
INSERT INTO a VALUES (4, CAST(CAST('0.5' AS DECIMAL(3,2)) AS JSON)), (5, 'null');
-- -> {"sequence":6,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":4},{"JsonTyped":{"Decimal":"0.50"}}]},{"cols":[{"SignedInteger":5},{"Json":null}]}]}}}
INSERT INTO keyless SELECT j FROM a;
-- -> {"sequence":7}
DELETE FROM keyless WHERE JSON_TYPE(j) IN ('OBJECT', 'DECIMAL');
-- -> {"sequence":8}
UPDATE a SET j = JSON_SET(j, '$.price', CAST(1 AS DECIMAL(5,3))) WHERE id = 2;
-- -> {"sequence":9}
CREATE TABLE columns (id INT PRIMARY KEY, bi BINARY(3), vb VARBINARY(9), tb TINYBLOB, b BLOB, mb MEDIUMBLOB, lb LONGBLOB, bt BIT(9), y YEAR, ts TIMESTAMP(6) NULL, w VARCHAR(5) CHARACTER SET utf16, j JSON);
-- -> {"sequence":10}
SET time_zone = '+05:30';
INSERT INTO columns VALUES (1, x'ff', x'00ff', x'00ff', x'00ff', x'00ff', x'00ff', 259, 1999, '2024-02-29 12:34:56.5', 'ab', NULL), (2, '', '', '', '', '', '', 0, 0, NULL, '', NULL);
-- -> {"sequence":11}
SET time_zone = '+00:00';
UPDATE columns SET j = JSON_ARRAY(bi, vb, tb, b, mb, lb, bt, y, ts, w) WHERE id = 1;
-- -> {"sequence":12}
UPDATE columns SET j = JSON_OBJECT('a', JSON_ARRAY(bi, vb, tb), 'b', JSON_ARRAY(b, mb, lb), 'c', CAST(0 AS UNSIGNED), 'long', IFNULL(lb, REPEAT('x', 70000)), 'ts', ts) WHERE id = 2;
-- -> {"sequence":13}
INSERT INTO a VALUES (6, (SELECT j FROM columns WHERE id = 1));
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":6},{"JsonTyped":{"array":[{"Opaque":{"type":254,"base64":"/wAA"}},{"Opaque":{"type":15,"base64":"AP8="}},{"Opaque":{"type":249,"base64":"AP8="}},{"Opaque":{"type":252,"base64":"AP8="}},{"Opaque":{"type":250,"base64":"AP8="}},{"Opaque":{"type":251,"base64":"AP8="}},{"Opaque":{"type":16,"base64":"AQM="}},{"UnsignedInteger":1999},{"LocalTimestamp":{"year":2024,"month":2,"day":29,"hour":7,"minute":4,"second":56,"subsecond":500000}},{"Opaque":{"type":253,"base64":"AGEAYg=="}}]}}]}]}}}
INSERT INTO a VALUES (7, JSON_ARRAY(CAST(4294967295 AS UNSIGNED), CAST(4294967295 AS SIGNED), CAST(4294967296 AS UNSIGNED), CAST(4294967296 AS SIGNED)));
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":7},{"JsonTyped":{"array":[{"UnsignedInteger":4294967295},4294967295,4294967296,{"SignedInteger":4294967296}]}}]}]}}}
INSERT INTO keyless VALUES ('[5]'), (JSON_ARRAY(CAST(5 AS UNSIGNED))), (JSON_ARRAY(CAST(5 AS DECIMAL(3,0)))), ('["2001-02-03"]'), (JSON_ARRAY(DATE'2001-02-03')), (JSON_ARRAY(TIMESTAMP'2001-02-03 04:05:06')), ('["base64:type15:AP8="]'), (JSON_ARRAY(x'00ff'));
-- -> {"sequence":16}
INSERT INTO keyless SELECT JSON_ARRAY(CAST('2001-02-03 04:05:06' AS DATETIME)) UNION ALL SELECT JSON_ARRAY(ts) FROM columns;
-- -> {"sequence":17}
DELETE FROM keyless WHERE JSON_TYPE(j->'$[0]') IN ('UNSIGNED INTEGER', 'DATE', 'BLOB', 'TIMESTAMP');
-- -> {"sequence":18}
CREATE TABLE d (d JSON, v JSON, m JSON, x INT);
-- -> {"sequence":19}
INSERT INTO d VALUES ('{"a": 1}', JSON_ARRAY(1.0), NULL, 1), ('{"a": 1}', '[1.0]', NULL, 2);
-- -> {"sequence":20}
DELETE FROM d WHERE x = 2;
-- -> {"sequence":21}
INSERT INTO a VALUES (8, CONCAT(REPEAT('[', 100), '1', REPEAT(']', 100))), (9, JSON_SET(CONCAT(REPEAT('{"a":', 99), '{}', REPEAT('}', 99)), '$.b', x'00'));
-- -> {"sequence":22}
