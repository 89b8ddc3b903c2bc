-- A JSON document has dates that only the leader's modes allow. The table computes values, so its rows are written in
-- the leader's modes, which what is written of such a document must outlive.
CREATE DATABASE document_dates;
USE document_dates;
CREATE TABLE t (n INT, j JSON, g INT AS (n + 1) STORED);
SET sql_mode = '';
INSERT INTO t (n) VALUES (0), (1), (2);
UPDATE t SET j = JSON_ARRAY(CAST('0000-00-00' AS DATE), CAST('0000-00-00' AS DATETIME(6)), CAST('2001-00-00' AS DATE));
UPDATE t SET n = 3 WHERE n = 0;
DELETE FROM t WHERE n = 1;
-- @apply
-- @follower
SELECT n, CAST(j AS CHAR), g FROM document_dates.t ORDER BY n;
-- = [2, "[\"0000-00-00\", \"0000-00-00 00:00:00.000000\", \"2001-00-00\"]", 3]
-- = [3, "[\"0000-00-00\", \"0000-00-00 00:00:00.000000\", \"2001-00-00\"]", 4]
DELETE FROM document_dates.t WHERE n = 2;
-- @leader
DELETE FROM t WHERE n = 2;
-- @apply
-- @conflict document_dates/t … operation=Delete
