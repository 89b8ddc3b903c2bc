-- In the middle of a stream the leader logs rows without names of columns, and a session without all columns. The tables
-- that were changed meanwhile are left out until the stream is past that, and are copied when they are let in again.
-- @alone
CREATE DATABASE unreadable;
USE unreadable;
CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(9));
CREATE TABLE u (id INT PRIMARY KEY, n INT);
CREATE TABLE untouched (id INT PRIMARY KEY);
INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
INSERT INTO u VALUES (1, 1), (2, 2);
-- @apply
SET GLOBAL binlog_row_metadata = MINIMAL;
UPDATE t SET n = 10 WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO u VALUES (3, 3);
SET GLOBAL binlog_row_metadata = FULL;
SET binlog_row_image = MINIMAL;
UPDATE u SET n = 20 WHERE id = 2;
SET binlog_row_image = FULL;
INSERT INTO t VALUES (4, 4, 'd');
INSERT INTO untouched VALUES (1);
-- @apply
-- @stops cdc-producer 3 table unreadable.t … add "unreadable.t" to filters.exclude_tables … --until-current … copies the table
-- @profile producer filters.exclude_tables = ["unreadable.t"]
-- @run cdc-producer
-- @stops cdc-producer 3 table unreadable.u … add "unreadable.u" to
-- @profile producer filters.exclude_tables = ["unreadable.t", "unreadable.u"]
-- @apply
-- @profile producer filters.exclude_tables = []
-- @run cdc-producer
-- @logged newly_included="unreadable.t, unreadable.u
-- @apply
-- @equal
