-- A statement that the follower refuses: those before it are committed, and the stream goes on without it.
-- @differs refused_statement.t
CREATE DATABASE refused_statement;
USE refused_statement;
CREATE TABLE t (i INT);
-- @apply
-- @follower
USE refused_statement;
ALTER TABLE t ADD COLUMN b INT;
-- @leader
ALTER TABLE t ADD COLUMN a INT;
ALTER TABLE t ADD COLUMN b INT;
ALTER TABLE t ADD COLUMN c INT;
INSERT INTO t VALUES (1, NULL, NULL, 2);
-- @apply
-- @stops cdc-consumer 3 Duplicate column name 'b'
-- @apply
-- @stops cdc-consumer 3 tried: ALTER TABLE t ADD COLUMN b INT; at sequence 3, leader position binlog.
-- @stops cdc-consumer 3 to do without this record for good: cdc-consumer PROFILE --skip 3
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [2]
-- @run cdc-consumer --skip {skip}
-- @logged record skipped sequence=3
-- @follower
SELECT i, a, b, c FROM t;
-- = [1, null, null, 2]
SELECT sequence, state, statement FROM cdc.ledger WHERE resource = '{leader}' ORDER BY sequence;
-- = [0, "done", "CREATE DATABASE refused_statement"]
-- = [1, "done", "CREATE TABLE t (i INT)"]
-- = [2, "done", "ALTER TABLE t ADD COLUMN a INT"]
-- = [3, "skipped", "ALTER TABLE t ADD COLUMN b INT"]
-- = [4, "done", "ALTER TABLE t ADD COLUMN c INT"]
