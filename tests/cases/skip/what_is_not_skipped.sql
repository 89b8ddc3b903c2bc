-- Only what the follower refuses is skipped: not what it takes, nor what is applied or skipped already, nor what is not
-- there; and several records of one batch only where all are named.
-- @differs skip_several.t
CREATE DATABASE skip_several;
USE skip_several;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9));
-- @apply
-- @follower
USE skip_several;
ALTER TABLE t MODIFY name CHAR(3);
-- @run cdc-consumer --skip 1
-- @stops cdc-consumer 2 record 1 has been applied or skipped already: the follower is at sequence 1
-- @run cdc-consumer --skip 2
-- @stops cdc-consumer 2 there is no record 2 in the topic: the next one will be 2
-- @leader
INSERT INTO t VALUES (1, 'long');
INSERT INTO t VALUES (2, 'b');
INSERT INTO t VALUES (3, 'long');
-- @apply
-- @stops cdc-consumer 3 --skip 2
-- @apply --skip 2
-- @stops cdc-consumer 3 --skip 4
-- @follower
SELECT * FROM t;
-- = nothing
SELECT COUNT(*) FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped';
-- = [0]
-- @apply --skip 2 --skip 4
-- @follower
SELECT * FROM t;
-- = [2, "b"]
SELECT sequence FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped' ORDER BY sequence;
-- = [2]
-- = [4]
-- @leader
INSERT INTO t VALUES (5, 'e');
-- @apply --skip 5
-- @stops cdc-consumer 2 the follower has applied record 5, so it is not skipped
-- @follower
SELECT id FROM t ORDER BY id;
-- = [2]
-- = [5]
SELECT COUNT(*) FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped';
-- = [2]
