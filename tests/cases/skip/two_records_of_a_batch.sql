-- Two refused records of one transaction: the second stop's command has both, since its batch took the first one back.
-- @differs skip_two.t
CREATE DATABASE skip_two;
USE skip_two;
CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9));
-- @apply
-- @follower
ALTER TABLE skip_two.t MODIFY name CHAR(3);
-- @leader
BEGIN;
INSERT INTO t VALUES (1, 'long');
INSERT INTO t VALUES (2, 'longer');
INSERT INTO t VALUES (3, 'c');
COMMIT;
-- @apply
-- @stops cdc-consumer 3 to do without this record for good: cdc-consumer PROFILE --skip 2
-- @run cdc-consumer --skip 2
-- @stops cdc-consumer 3 to do without these records for good: cdc-consumer PROFILE --skip 2 --skip 3
-- @run cdc-consumer --skip 2 --skip 3
-- @follower
SELECT id FROM skip_two.t;
-- = [3]
