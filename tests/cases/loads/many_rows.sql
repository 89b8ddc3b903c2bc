-- Many rows are loaded by LOAD DATA LOCAL. A row in the way is a conflict; then rows go one by one, and the next batches
-- by INSERT. A follower that takes no LOAD DATA LOCAL gets all by INSERT, and that is said.
-- @alone
-- @profile consumer consumer.batch_rows = 600
-- @profile consumer log.level = "debug"
CREATE DATABASE many_rows;
USE many_rows;
SET cte_max_recursion_depth = 10000;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9));
-- @apply
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_load';
-- @as NAME before
-- @leader
INSERT INTO t WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 599) SELECT i, i FROM n;
INSERT INTO t SELECT id + 600, id + 600 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 1200, id + 1200 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 1800, id + 1800 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 2400, id + 2400 FROM t WHERE id < 600;
-- @apply
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_load';
-- @as NAME loaded
SELECT {loaded} - {before};
-- = [5]
INSERT INTO many_rows.t VALUES (3300, 'foreign');
-- @leader
INSERT INTO t SELECT id + 3000, id + 3000 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 3600, id + 3600 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 4200, id + 4200 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 4800, id + 4800 FROM t WHERE id < 600;
INSERT INTO t SELECT id + 5400, id + 5400 FROM t WHERE id < 600;
-- @apply
-- @conflict key=id=3300
-- @logged batch failed, retrying row by row
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_load';
-- @as NAME loaded_then
-- The first batch, beside the second and alone; without a pause the other four would be loaded, too.
SELECT {loaded_then} - {loaded} BETWEEN 1 AND 3;
-- = [1]
SELECT COUNT(*), SUM(id), SUM(v) FROM many_rows.t;
-- = [6000, "17997000", 17997000.0]
SET GLOBAL local_infile = OFF;
-- @leader
CREATE TABLE u SELECT * FROM t LIMIT 0;
INSERT INTO u SELECT * FROM t WHERE id < 1000;
-- @apply
-- @logged the follower does not accept LOAD DATA LOCAL
-- @run cdc-consumer --status
-- @logged the follower does not accept LOAD DATA LOCAL
-- @follower
SET GLOBAL local_infile = ON;
SHOW GLOBAL STATUS LIKE 'Com_load';
-- @as NAME loaded_last
SELECT {loaded_last} - {loaded_then}, COUNT(*) FROM many_rows.u;
-- = [0, 1000]
-- @apply
-- @silent the follower does not accept LOAD DATA LOCAL
-- @run cdc-consumer --status
-- @silent the follower does not accept LOAD DATA LOCAL
