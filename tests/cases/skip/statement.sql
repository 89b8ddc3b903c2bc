-- A statement is skipped, and the rows behind it are applied.
CREATE DATABASE skip_statement;
USE skip_statement;
CREATE TABLE t (id INT PRIMARY KEY);
-- @apply
-- The first run says once that nobody captures the follower.
-- @logged no client reads the follower's own binlog
-- @follower
ALTER TABLE skip_statement.t ADD name INT;
-- @leader
ALTER TABLE t ADD name INT;
INSERT INTO t VALUES (1, 7);
-- @apply
-- @stops cdc-consumer 3 --skip 2
-- @run cdc-consumer --skip {skip}
-- @silent no client reads
-- @follower
SELECT * FROM skip_statement.t;
-- = [1, 7]
SELECT sequence, statement FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped';
-- = [2, "ALTER TABLE t ADD name INT"]
