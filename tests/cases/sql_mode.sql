-- What a server computes of a row depends on the sql_mode of the session that wrote it, and so does what it takes.
-- @newer leader sql_mode INTERPRET_UTF8_AS_UTF8MB4
-- @newer follower sql_mode INTERPRET_UTF8_AS_UTF8MB4
CREATE DATABASE sql_mode CHARACTER SET utf8mb4;
-- -> {"sequence":0}
USE sql_mode;
SET sql_mode = 'INTERPRET_UTF8_AS_UTF8MB4';
CREATE TABLE zero (id INT PRIMARY KEY, t CHAR(3) CHARACTER SET utf8, a DATE, b DATE AS (DATE_ADD(a, INTERVAL 1 DAY)) STORED, c DATE AS (a) STORED, d INT AS (DAYOFWEEK(a)));
-- -> {"sequence":1,"context":{"sql_mode":"INTERPRET_UTF8_AS_UTF8MB4"}}
INSERT INTO zero (id, a) VALUES (1, '0000-00-00'), (2, '2001-00-00');
-- -> {"sequence":2,"sql_mode":"","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},"Null",{"Date":{"year":0,"month":0,"day":0}},"Null",{"Date":{"year":0,"month":0,"day":0}},"Null"]},{"cols":[{"SignedInteger":2},"Null",{"Date":{"year":2001,"month":0,"day":0}},"Null",{"Date":{"year":2001,"month":0,"day":0}},"Null"]}]}}}
SET sql_mode = DEFAULT;
UPDATE zero SET t = 'x';
-- -> {"sequence":3,"sql_mode":null}
INSERT IGNORE INTO zero (id, a) VALUES (3, '0000-00-00');
-- -> {"sequence":4,"sql_mode":null}
CREATE TABLE indexed (id INT PRIMARY KEY, a VARCHAR(20), x INT, v TINYINT AS (x), KEY ((CAST(a AS SIGNED))), KEY ((CAST(x AS DECIMAL(2,0)))), KEY (v));
-- -> {"sequence":5}
CREATE TABLE computed (id INT PRIMARY KEY, a INT, f FLOAT, n FLOAT(9,3), v TINYINT AS (a) STORED, w CHAR(3) AS (CONCAT('xxxx', a)) STORED, q DECIMAL(20,10) AS (10 / a) STORED, h FLOAT AS (f * 2) STORED);
-- -> {"sequence":6}
CREATE TABLE checked (id INT PRIMARY KEY, a VARCHAR(20), CHECK (CAST(a AS DATE) IS NULL OR CAST(a AS DATE) <> '2001-01-01'));
-- -> {"sequence":7}
CREATE TABLE keyless (a INT, v TINYINT AS (a) STORED);
-- -> {"sequence":8}
SET sql_mode = '';
INSERT INTO indexed (id, a, x) VALUES (1, 'abc', 1), (2, '1', 1000), (3, 'def', 2000), (4, '4', 4);
-- -> {"sequence":9,"sql_mode":""}
INSERT INTO computed (id, a, f, n) VALUES (1, 1000, 3.5e38, 999999.999), (2, 0, -3.5e38, -1e7), (3, 3, 1, 1);
-- -> {"sequence":10,"sql_mode":""}
INSERT INTO checked VALUES (1, 'abc'), (2, 'def');
-- -> {"sequence":11}
INSERT INTO keyless (a) VALUES (1000), (1000), (2), (3000);
-- -> {"sequence":12}
UPDATE indexed SET a = 'ghi' WHERE id = 3;
-- -> {"sequence":13}
DELETE FROM indexed WHERE id < 3;
-- -> {"sequence":14}
UPDATE computed SET a = a + 2000;
-- -> {"sequence":15}
UPDATE keyless SET a = 4000 WHERE a = 3000;
-- -> {"sequence":16}
DELETE FROM keyless WHERE a = 1000 LIMIT 1;
-- -> {"sequence":17}
UPDATE checked SET a = 'ghi' WHERE id = 2;
-- -> {"sequence":18}
SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL';
CREATE TABLE truncated (a DATETIME(6), id INT, t TIME AS (a) STORED, k DATETIME AS (a) STORED PRIMARY KEY);
-- -> {"sequence":19}
INSERT INTO truncated (a, id) VALUES ('2024-01-01 00:00:00.9', 1), ('2024-01-01 00:00:01.9', 2), ('2024-01-01 00:00:05.9', 3);
-- -> {"sequence":20,"sql_mode":"TIME_TRUNCATE_FRACTIONAL"}
SET sql_mode = DEFAULT;
DELETE FROM truncated WHERE id = 1;
-- -> {"sequence":21,"sql_mode":null}
INSERT INTO truncated (a, id) VALUES ('2024-01-02 00:00:00.9', 4);
-- -> {"sequence":22}
SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION';
CREATE TABLE padded (id INT PRIMARY KEY, a CHAR(5), l INT AS (LENGTH(a)) STORED, x INT UNSIGNED, y INT UNSIGNED, s BIGINT AS (x - y) STORED);
-- -> {"sequence":23}
INSERT INTO padded (id, a, x, y) VALUES (1, 'a', 1, 2), (2, 'ab', 2, 1), (3, 'abc', 3, 4);
-- -> {"sequence":24,"sql_mode":"NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH"}
UPDATE padded SET a = 'abcd', y = 9 WHERE id = 3;
-- -> {"sequence":25}
DELETE FROM padded WHERE id = 2;
-- -> {"sequence":26}
SET sql_mode = 'ALLOW_INVALID_DATES';
CREATE TABLE invalid (id INT PRIMARY KEY, a VARCHAR(20), b DATE AS (CAST(a AS DATE)) STORED, c DATE AS (a) STORED);
-- -> {"sequence":27}
INSERT INTO invalid (id, a) VALUES (1, '2001-02-31');
-- -> {"sequence":28,"sql_mode":"ALLOW_INVALID_DATES"}
SET sql_mode = '';
INSERT INTO invalid (id, a) VALUES (2, '2001-02-31');
-- -> {"sequence":29,"sql_mode":""}
SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL';
XA START 'x';
INSERT INTO truncated (a, id) VALUES ('2024-01-03 00:00:00.9', 5);
XA END 'x';
XA PREPARE 'x';
SET sql_mode = DEFAULT;
XA COMMIT 'x';
-- -> {"sequence":30,"sql_mode":"TIME_TRUNCATE_FRACTIONAL"}
-- Only the sign of a zero changes, in a table without a key, in a row with an error value that strict mode refuses.
SET sql_mode = '';
CREATE TABLE signs (f FLOAT, e ENUM('','a') NOT NULL);
-- -> {"sequence":31}
INSERT INTO signs VALUES (0.0e0, 0), (0.0e0, 0);
-- -> {"sequence":32}
UPDATE signs SET f = -0.0e0 LIMIT 1;
-- -> {"operation":{"Update":{"rows":[{"before_cols":[{"Float":0.0},{"Enum":0}],"after_cols":[{"Float":-0.0},{"Enum":0}]}]}}}
