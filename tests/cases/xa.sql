-- XA transactions: their rows are records when, and only when, they commit.
CREATE DATABASE xa;
-- -> {"sequence":0}
USE xa;
CREATE TABLE t (i INT PRIMARY KEY);
-- -> {"sequence":1}
XA START 'a','b',7;
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
XA END 'a','b',7;
XA PREPARE 'a','b',7;
INSERT INTO t VALUES (3);
-- -> {"sequence":2,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3}]}]}}}
XA COMMIT 'a','b',7;
-- -> {"sequence":3,"transaction":{"index":0,"last":false},"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- -> {"sequence":4,"transaction":{"index":1,"last":true},"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2}]}]}}}
XA START x'ff00';
INSERT INTO t VALUES (4);
XA END x'ff00';
XA PREPARE x'ff00';
XA ROLLBACK x'ff00';
XA START 'one phase';
INSERT INTO t VALUES (5);
XA END 'one phase';
XA COMMIT 'one phase' ONE PHASE;
-- -> {"sequence":5,"transaction":{"index":0,"last":true},"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":5}]}]}}}
XA START 'empty';
XA END 'empty';
XA PREPARE 'empty';
XA COMMIT 'empty';
SET binlog_transaction_compression = ON;
XA START 'compressed';
INSERT INTO t VALUES (6);
XA END 'compressed';
XA PREPARE 'compressed';
XA COMMIT 'compressed';
-- -> {"sequence":6,"transaction":{"index":0,"last":true},"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":6}]}]}}}
