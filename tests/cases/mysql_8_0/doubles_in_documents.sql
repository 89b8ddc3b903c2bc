-- A follower of MySQL 8.0, whose parser of JSON takes one double in ten for its neighbour.
-- @server follower 8.0
-- @profile producer producer.partial_json = "apply"
CREATE DATABASE doubles_in_documents;
USE doubles_in_documents;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, d DOUBLE, j JSON, g DOUBLE AS (j->'$.v') STORED,
  o JSON DEFAULT (JSON_OBJECT('a', 1.7976931348623157e308)));
CREATE TABLE numbers (n INT PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 400) SELECT n FROM r;
-- Numbers of all sizes, in documents of all depths.
INSERT INTO t (d) SELECT (RAND(n) - 0.5) * POW(10, FLOOR(RAND(n + 1000) * 600 - 300)) FROM numbers;
INSERT INTO t (d) SELECT (RAND(n + 5000) - 0.5) * 1000 FROM numbers;
INSERT INTO t (d) VALUES (-0e0), (0e0), (1e15), (1e22), (1e23), (5e-324), (2.2250738585072014e-308),
  (1.7976931348623157e308), (9007199254740993), (0.1), (123456789012345680000), (1e0), (-1e0);
UPDATE t SET j = JSON_OBJECT('v', d, 'a', JSON_ARRAY(d, JSON_OBJECT('b', JSON_ARRAY(-d, 'x', NULL, true))), '1', 1);
INSERT INTO t (d, j) VALUES
  (1, '{"\\"q\'": [1.0, 1, "1.0", {}, [], "", null, false, 18446744073709551615, -9223372036854775808, "\\u0000"]}'),
  (2, '0.1'), (3, '-0.0'), (4, '[0.8488310850397165, [[[[0.14500000000000002]]]]]'),
  -- Members of SQL's types beside doubles.
  (5, JSON_ARRAY(0.8488310850397165e0, CAST(1.50 AS DECIMAL(10,2)), CAST('2020-01-01' AS DATE), x'ff', 1e-7)),
  (6, JSON_ARRAY(1.10, 12345678901234567890.123456789012345, 1e0));
CREATE TABLE keyless (a INT, j JSON);
INSERT INTO keyless SELECT id, j FROM t WHERE id BETWEEN 100 AND 140;
INSERT INTO keyless SELECT id, j FROM t WHERE id BETWEEN 100 AND 110;
-- @apply
SELECT COUNT(*), SUM(CRC32(CONCAT(j, IFNULL(g, 0)))) FROM doubles_in_documents.t;
-- @both
-- Parts of documents.
SET binlog_row_value_options = 'PARTIAL_JSON';
UPDATE t SET j = JSON_SET(j, '$.v', d / 3, '$.a[1].b[0]', d * 1.1) WHERE JSON_TYPE(j) = 'OBJECT' AND ABS(d) < 1e300;
UPDATE t SET j = JSON_REPLACE(j, '$[0]', 0.123456789 * id) WHERE JSON_TYPE(j) = 'ARRAY';
UPDATE t SET j = JSON_ARRAY_APPEND(j, '$.a', RAND(7)) WHERE id < 100;
SET binlog_row_value_options = '';
-- Documents that the server makes of text.
ALTER TABLE t ADD made JSON DEFAULT ('[0.41339201716594043, 463.78841705583204]');
-- Rows that are found by their documents alone.
UPDATE keyless SET a = a + 1000 WHERE a % 2 = 0;
DELETE FROM keyless WHERE a % 3 = 0;
-- @apply
-- @logged JSON documents that the statement made from text may contain other doubles than on the leader
-- @logged copy the table again: cdc-producer PROFILE --copy doubles_in_documents.t
-- @follower
UPDATE doubles_in_documents.t SET j = JSON_SET(j, '$.v', 463.788417055832) WHERE id = 7;
-- @run cdc-producer --copy doubles_in_documents.t
-- @apply
-- @logged missing=0 different=
-- @logged table copied
SELECT COUNT(*), SUM(CRC32(CONCAT(a, j))) FROM doubles_in_documents.keyless;
-- @both
SELECT COUNT(*), SUM(CRC32(CONCAT(j, IFNULL(g, 0)))) FROM doubles_in_documents.t;
-- @both
