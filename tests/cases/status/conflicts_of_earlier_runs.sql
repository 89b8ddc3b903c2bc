-- cdc-consumer --status shows the conflicts of earlier runs, with what was removed; one of a batch that failed is not
-- noted, and only the newest are kept.
CREATE DATABASE status_conflicts;
USE status_conflicts;
CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, no INT);
INSERT INTO t (id, u) VALUES (9, 9);
-- @apply
-- @follower
USE status_conflicts;
INSERT INTO t VALUES (1, 10, 0), (2, 20, 0);
DELETE FROM t WHERE id = 9;
ALTER TABLE t DROP no;
-- @leader
BEGIN;
DELETE FROM t WHERE id = 9;
INSERT INTO t VALUES (8, 8, 8);
COMMIT;
-- @apply
-- @stops cdc-consumer 3 Unknown column 'no'
-- @conflict key=id=9 … operation=Delete
-- @run cdc-consumer --status
-- @logged conflicts    0
-- @follower
ALTER TABLE t ADD no INT;
-- @apply
-- @conflict key=id=9 … operation=Delete
-- @leader
INSERT INTO t VALUES (1, 20, 1);
-- @apply
-- @conflict key=id=1 … operation=Add
-- @run cdc-consumer --status
-- @logged conflicts    2
-- @logged Delete of id=9 in flv://{leader}/status_conflicts/t: the row is not there
-- @logged Add of id=1 in flv://{leader}/status_conflicts/t: Duplicate entry … ; removed id=2
-- @follower
SELECT COUNT(*), MIN(number), MAX(number) FROM cdc.conflicts WHERE resource = '{leader}';
-- = [2, 1, 2]
SET cte_max_recursion_depth = 20000;
INSERT INTO cdc.conflicts (resource, number, sequence, uri, operation, row_key, reason, removed, at) WITH RECURSIVE n AS (SELECT 3 i UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT '{leader}', i, 1, '', '', '', '', '', NOW() FROM n;
DELETE FROM t WHERE id = 8;
-- @leader
DELETE FROM t WHERE id = 8;
-- @apply
-- @conflict key=id=8 … operation=Delete
-- @follower
SELECT COUNT(*), MIN(number), MAX(number) FROM cdc.conflicts WHERE resource = '{leader}';
-- = [10000, 2, 10001]
