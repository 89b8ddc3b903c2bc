-- Documents with members of SQL types: DECIMAL, DATE, TIME and DATETIME keep their type on the follower.
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
