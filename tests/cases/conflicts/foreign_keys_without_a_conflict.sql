-- Rows that a leader deletes or alters by foreign keys are logged more than once, or as they never were: no conflict,
-- neither in one statement for many rows nor row by row.
-- @newer leader rows of cascades in the binlog
-- @alone
-- @profile consumer log.level = "debug"
CREATE DATABASE by_foreign_keys;
-- -> {}
USE by_foreign_keys;
CREATE TABLE own (n INT, c INT UNIQUE, r INT, FOREIGN KEY (r) REFERENCES own (c) ON DELETE SET NULL);
-- -> {}
CREATE TABLE pair (n INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES pair (n) ON DELETE CASCADE);
-- -> {}
CREATE TABLE parent (id INT PRIMARY KEY);
-- -> {}
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
-- -> {}
CREATE TABLE t (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(20));
-- -> {}
INSERT INTO own VALUES (1, 1, 1);
-- -> {}
SET foreign_key_checks = 0;
INSERT INTO pair VALUES (1, 2), (2, 1);
-- -> {}
SET foreign_key_checks = 1;
INSERT INTO parent VALUES (1);
-- -> {}
INSERT INTO child VALUES (10, 1);
-- -> {}
INSERT INTO t VALUES (1, 1, 'aaa');
-- -> {}
-- @apply
-- @follower
DELETE FROM by_foreign_keys.t;
-- @leader
DELETE FROM own;
-- -> {"operation":{"Update":{}}}
-- -> {"operation":{"Delete":{}}}
DELETE FROM pair WHERE n = 1;
-- -> {"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":2},{"SignedInteger":1}]},{"cols":[{"SignedInteger":1},{"SignedInteger":2}]},{"cols":[{"SignedInteger":1},{"SignedInteger":2}]}]}}}
BEGIN;
UPDATE t SET u = 2, name = 'bbb';
-- -> {"uri":"flv://mysql-srv1/by_foreign_keys/t","flags":16}
DELETE FROM parent;
-- -> {"uri":"flv://mysql-srv1/by_foreign_keys/child","flags":18}
-- -> {"uri":"flv://mysql-srv1/by_foreign_keys/parent","flags":16}
COMMIT;
-- @apply
-- @conflict by_foreign_keys/t key=id=1
-- @logged row by row
