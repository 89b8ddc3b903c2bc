-- Several changes in one transaction, a rollback in part, and rows of a foreign key's cascade.
-- @newer leader rows of cascades in the binlog
CREATE DATABASE transactions;
-- -> {"sequence":0}
USE transactions;
CREATE TABLE parent (id INT PRIMARY KEY);
-- -> {"sequence":1}
CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
-- -> {"sequence":2}
BEGIN;
INSERT INTO parent VALUES (1), (2), (3);
INSERT INTO child VALUES (10, 1), (20, 2), (30, 3);
SAVEPOINT s;
DELETE FROM parent WHERE id = 3;
ROLLBACK TO s;
UPDATE parent SET id = 4 WHERE id = 3;
COMMIT;
-- -> {"sequence":3,"uri":"flv://mysql-srv1/transactions/parent","transaction":{"index":0,"last":false}}
-- -> {"sequence":4,"uri":"flv://mysql-srv1/transactions/child","transaction":{"index":1,"last":false}}
-- -> {"sequence":5,"uri":"flv://mysql-srv1/transactions/child","flags":18,"transaction":{"index":2,"last":false}}
-- -> {"sequence":6,"uri":"flv://mysql-srv1/transactions/parent","transaction":{"index":3,"last":true}}
BEGIN;
INSERT INTO parent VALUES (9);
ROLLBACK;
DELETE FROM parent WHERE id = 1;
-- -> {"sequence":7,"uri":"flv://mysql-srv1/transactions/child","operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":10},{"SignedInteger":1}]}]}}}
-- -> {"sequence":8,"uri":"flv://mysql-srv1/transactions/parent","operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
SET foreign_key_checks = 0;
INSERT INTO child VALUES (40, 44);
-- -> {"sequence":9,"flags":18}
