-- The follower does without a record that it refuses, whole; the records around it, of the same transaction, are there.
-- @differs skip_one.t
CREATE DATABASE skip_one;
USE skip_one;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9));
-- @apply
-- @follower
ALTER TABLE skip_one.t MODIFY name CHAR(3);
-- @leader
INSERT INTO t VALUES (1, 'a');
BEGIN;
INSERT INTO t VALUES (2, 'b');
INSERT INTO t VALUES (3, 'c'), (4, 'long');
INSERT INTO t VALUES (5, 'e');
COMMIT;
INSERT INTO t VALUES (6, 'f');
-- @apply
-- @stops cdc-consumer 3 to do without this record for good: cdc-consumer PROFILE --skip 4
-- @run cdc-consumer --skip {skip}
-- @logged record skipped sequence=4
-- @follower
SELECT id FROM skip_one.t ORDER BY id;
-- = [1]
-- = [2]
-- = [5]
-- = [6]
SELECT sequence, statement, note LIKE '%Data too long%' FROM cdc.ledger WHERE resource = '{leader}' AND state = 'skipped';
-- = [4, "Add, 2 rows of flv://{leader}/skip_one/t", 1]
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [6]
