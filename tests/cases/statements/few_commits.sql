-- Statements that follow one another share the commits of their bookkeeping, and rows go with those of the statement
-- behind them.
-- @alone
CREATE DATABASE few_commits;
USE few_commits;
CREATE TABLE t (i INT);
CREATE TABLE r (i INT);
-- @apply
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_commit';
-- @as NAME before
-- @leader
ALTER TABLE t ADD c1 INT;
ALTER TABLE t ADD c2 INT;
ALTER TABLE t ADD c3 INT;
ALTER TABLE t ADD c4 INT;
ALTER TABLE t ADD c5 INT;
ALTER TABLE t ADD c6 INT;
ALTER TABLE t ADD c7 INT;
ALTER TABLE t ADD c8 INT;
ALTER TABLE t ADD c9 INT;
ALTER TABLE t ADD c10 INT;
ALTER TABLE t ADD c11 INT;
ALTER TABLE t ADD c12 INT;
ALTER TABLE t ADD c13 INT;
ALTER TABLE t ADD c14 INT;
ALTER TABLE t ADD c15 INT;
ALTER TABLE t ADD c16 INT;
ALTER TABLE t ADD c17 INT;
ALTER TABLE t ADD c18 INT;
ALTER TABLE t ADD c19 INT;
ALTER TABLE t ADD c20 INT;
-- @apply
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_commit';
-- @as NAME between
-- With three for each it would be 40 more than the statements.
SELECT {between} - {before} < 15;
-- = [1]
-- @leader
INSERT INTO r VALUES (1);
ALTER TABLE t ADD d1 INT;
INSERT INTO r VALUES (2);
ALTER TABLE t ADD d2 INT;
INSERT INTO r VALUES (3);
ALTER TABLE t ADD d3 INT;
INSERT INTO r VALUES (4);
ALTER TABLE t ADD d4 INT;
INSERT INTO r VALUES (5);
ALTER TABLE t ADD d5 INT;
INSERT INTO r VALUES (6);
ALTER TABLE t ADD d6 INT;
INSERT INTO r VALUES (7);
ALTER TABLE t ADD d7 INT;
INSERT INTO r VALUES (8);
ALTER TABLE t ADD d8 INT;
INSERT INTO r VALUES (9);
ALTER TABLE t ADD d9 INT;
INSERT INTO r VALUES (10);
ALTER TABLE t ADD d10 INT;
-- @apply
-- @follower
SHOW GLOBAL STATUS LIKE 'Com_commit';
-- @as NAME end
-- Two for each, and some at the start; it would be ten more.
SELECT {end} - {between} < 30;
-- = [1]
