-- Values at the edges of their types, where decoders of the binlog go wrong.
-- @newer leader VECTOR
-- @newer follower VECTOR
CREATE DATABASE edges;
-- -> {"sequence":0}
USE edges;
SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00';
CREATE TABLE times (t TIME(6), t1 TIME(1), d DATE, dt DATETIME(6), ts TIMESTAMP NULL, y YEAR);
-- -> {"sequence":1}
INSERT INTO times VALUES ('-12:34:56.210988', '-00:00:01.9', '2001-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', 0);
-- -> {"columns":["t","t1","d","dt","ts","y"],"operation":{"Add":{"rows":[{"cols":[{"Time":{"negative":true,"hour":12,"minute":34,"second":56,"subsecond":210988}},{"Time":{"negative":true,"hour":0,"minute":0,"second":1,"subsecond":900000}},{"Date":{"year":2001,"month":0,"day":0}},{"DateTime":{"year":0,"month":0,"day":0,"hour":0,"minute":0,"second":0,"subsecond":0}},{"Timestamp":{"unix_time":0,"subsecond":0}},{"Year":0}]}]}}}
INSERT INTO times VALUES ('-838:59:59', '-255:59:59.9', '2001-02-31', '0000-12-31 23:59:59.000001', NULL, 1901);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"Time":{"negative":true,"hour":838,"minute":59,"second":59,"subsecond":0}},{"Time":{"negative":true,"hour":255,"minute":59,"second":59,"subsecond":900000}},{"Date":{"year":2001,"month":2,"day":31}},{"DateTime":{"year":0,"month":12,"day":31,"hour":23,"minute":59,"second":59,"subsecond":1}},"Null",{"Year":1901}]}]}}}
CREATE TABLE bytes (b BINARY(4), v VARBINARY(4), l BLOB);
-- -> {"sequence":4}
INSERT INTO bytes VALUES (x'0102', x'0100', x'00'), ('', '', ''), (NULL, NULL, NULL);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"Blob":"AQIAAA=="},{"Blob":"AQA="},{"Blob":"AA=="}]},{"cols":[{"Blob":"AAAAAA=="},{"Blob":""},{"Blob":""}]},{"cols":["Null","Null","Null"]}]}}}
CREATE TABLE texts (l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf16, c VARCHAR(20) CHARACTER SET cp1251, j VARCHAR(20) CHARACTER SET sjis);
-- -> {"sequence":6}
INSERT INTO texts VALUES (_latin1 x'81d09dd191', 'abc', _cp1251 x'98cd', _sjis x'815f'), ('', '', '', '');
-- -> {"operation":{"Add":{"rows":[{"cols":[{"String":"\u0081Ð\u009dÑ‘"},{"Text":{"charset":"utf16","base64":"AGEAYgBj"}},{"Text":{"charset":"cp1251","base64":"mM0="}},{"Text":{"charset":"sjis","base64":"gV8="}}]},{"cols":[{"String":""},{"Text":{"charset":"utf16","base64":""}},{"Text":{"charset":"cp1251","base64":""}},{"Text":{"charset":"sjis","base64":""}}]}]}}}
CREATE TABLE vectors (v VECTOR(2), l VARCHAR(5) CHARACTER SET latin1, b BINARY(3), w VECTOR(1), u VARCHAR(5), i TINYINT UNSIGNED);
-- -> {"sequence":8}
INSERT INTO vectors VALUES (TO_VECTOR('[1,2]'), 'é', x'01', TO_VECTOR('[0]'), 'é', 255);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"Vector":"AACAPwAAAEA="},{"String":"é"},{"Blob":"AQAA"},{"Vector":"AAAAAA=="},{"String":"é"},{"UnsignedInteger":255}]}]}}}
UPDATE vectors SET i = 254;
-- -> {"sequence":10}
CREATE TABLE members (n INT PRIMARY KEY, e ENUM('a','','ж') CHARACTER SET utf8mb4, c ENUM('a','ж') CHARACTER SET cp1251, s SET('a','b') CHARACTER SET latin1, x SET('','a'));
-- -> {"sequence":11}
INSERT IGNORE INTO members VALUES (1, 'ж', 'ж', 'a,b', 1), (2, '', 'a', '', 0), (3, 0, 0, NULL, 3);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"Enum":"ж"},{"Enum":2},{"Set":["a","b"]},{"Set":1}]},{"cols":[{"SignedInteger":2},{"Enum":""},{"Enum":1},{"Set":[]},{"Set":0}]},{"cols":[{"SignedInteger":3},{"Enum":0},{"Enum":0},"Null",{"Set":3}]}]}}}
CREATE TABLE member_keys (e ENUM('a','') CHARACTER SET cp1251, s SET('','a'), t VARCHAR(5), PRIMARY KEY (t, e, s));
-- -> {"key":null}
INSERT IGNORE INTO member_keys VALUES (0, 0, 'x'), (0, 1, 'x'), (1, 0, 'x'), (2, 0, 'x'), (2, 1, 'x'), (2, 2, 'x');
-- -> {"columns":["e","s","t"],"key":["t","e","s"]}
DELETE FROM member_keys WHERE e + 0 <> 1 AND s + 0 = 0;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"Enum":0},{"Set":0},{"String":"x"}]},{"cols":[{"Enum":2},{"Set":0},{"String":"x"}]}]}}}
CREATE TABLE empty_member (e ENUM('a',''), n INT, PRIMARY KEY (e));
-- -> {"sequence":16}
INSERT IGNORE INTO empty_member VALUES (0, 1), (1, 2), (2, 3);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"Enum":0},{"SignedInteger":1}]},{"cols":[{"Enum":"a"},{"SignedInteger":2}]},{"cols":[{"Enum":""},{"SignedInteger":3}]}]}}}
UPDATE empty_member SET n = 4 WHERE e + 0 = 2;
-- -> {"sequence":18}
DELETE FROM empty_member WHERE e + 0 = 2;
-- -> {"sequence":19}
CREATE TABLE keys_in_order (a INT, b VARCHAR(50), c INT, h INT INVISIBLE DEFAULT 7, g INT AS (a + 1) STORED, PRIMARY KEY (c, b(3), a));
-- -> {"sequence":20}
INSERT INTO keys_in_order (a, b, c) VALUES (1, 'abcd', 2);
-- -> {"columns":["a","b","c","h","g"],"key":["c","b","a"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"abcd"},{"SignedInteger":2},{"SignedInteger":7},{"SignedInteger":2}]}]}}}
DELETE FROM keys_in_order;
-- -> {"sequence":22}
CREATE TABLE `文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字` (`字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文` INT);
-- -> {"sequence":23}
INSERT INTO `文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字` VALUES (1);
-- -> {"columns":["字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文字文"]}
SET sql_mode = '';
CREATE TABLE unlike_members (s SET('', 'b') PRIMARY KEY, e ENUM('a', 'A', 'c'), t SET('', 'á', 'a'), u SET('a', 'A'), x INT);
-- -> {"sequence":25}
INSERT INTO unlike_members VALUES (3, 1, 1, 2, 1), (1, 2, 5, 3, 1);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"Set":3},{"Enum":1},{"Set":1},{"Set":2},{"SignedInteger":1}]},{"cols":[{"Set":1},{"Enum":2},{"Set":5},{"Set":3},{"SignedInteger":1}]}]}}}
ALTER TABLE unlike_members COMMENT 'a batch ends here';
-- -> {"sequence":27}
UPDATE unlike_members SET x = 2;
-- -> {"sequence":28}
CREATE TABLE rules_of_languages (n INT PRIMARY KEY, e ENUM('s', 'ß', '😀', '😁') COLLATE utf8mb4_general_ci, s SET('y', 'ü') CHARACTER SET latin1 COLLATE latin1_swedish_ci, r ENUM('u', 'v') COLLATE utf8mb4_roman_ci, t ENUM('ß', 'ü') COLLATE utf8mb4_general_ci);
-- -> {"sequence":29}
INSERT INTO rules_of_languages VALUES (1, 2, 2, 2, 2), (2, 4, 3, 1, 1);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"Enum":2},{"Set":2},{"Enum":2},{"Enum":"ü"}]},{"cols":[{"SignedInteger":2},{"Enum":4},{"Set":3},{"Enum":1},{"Enum":"ß"}]}]}}}
CREATE TABLE no_vector (n INT PRIMARY KEY, v VECTOR(2) NOT NULL, x INT);
-- -> {"sequence":31}
CREATE TABLE no_vector_no_key (v VECTOR(2) NOT NULL, x INT);
-- -> {"sequence":32}
INSERT IGNORE INTO no_vector (n) VALUES (1), (2), (3);
-- -> {"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"Vector":""},"Null"]},{"cols":[{"SignedInteger":2},{"Vector":""},"Null"]},{"cols":[{"SignedInteger":3},{"Vector":""},"Null"]}]}}}
INSERT IGNORE INTO no_vector_no_key (x) VALUES (1), (2), (2);
-- -> {"sequence":34}
ALTER TABLE no_vector COMMENT 'a batch ends here';
-- -> {"sequence":35}
UPDATE no_vector SET x = n WHERE n < 3;
-- -> {"sequence":36}
UPDATE no_vector SET v = TO_VECTOR('[1,2]') WHERE n = 2;
-- -> {"sequence":37}
UPDATE no_vector_no_key SET x = 3 WHERE x = 2 LIMIT 1;
-- -> {"sequence":38}
DELETE FROM no_vector_no_key WHERE x = 1;
-- -> {"sequence":39}
DELETE FROM no_vector WHERE n = 3;
-- -> {"sequence":40}
