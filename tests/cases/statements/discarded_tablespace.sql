-- A table whose tablespace was discarded can't be read on either server; it can be altered, renamed and dropped.
CREATE DATABASE discarded_tablespace;
USE discarded_tablespace;
CREATE TABLE a (i INT PRIMARY KEY, s VARCHAR(9) UNIQUE);
CREATE TABLE b LIKE a;
CREATE TABLE c LIKE a;
CREATE TABLE p (i INT PRIMARY KEY, s VARCHAR(9)) PARTITION BY HASH (i) PARTITIONS 2;
INSERT INTO a VALUES (1, 'a'), (2, 'b');
INSERT INTO b VALUES (1, 'a'), (2, 'b');
INSERT INTO c VALUES (1, 'a'), (2, 'b');
INSERT INTO p VALUES (1, 'a'), (2, 'b');
ALTER TABLE a DISCARD TABLESPACE;
ALTER TABLE discarded_tablespace.b ALGORITHM = DEFAULT, DISCARD TABLESPACE;
ALTER TABLE p DISCARD PARTITION ALL TABLESPACE;
INSERT INTO c VALUES (3, 'c');
-- @apply
-- @equal
-- @follower
SELECT * FROM discarded_tablespace.a;
-- @fails Tablespace … discarded
SELECT * FROM discarded_tablespace.b;
-- @fails Tablespace … discarded
SELECT * FROM discarded_tablespace.p;
-- @fails Tablespace … discarded
-- @leader
INSERT INTO c VALUES (4, 'd');
RENAME TABLE b TO b2;
DROP TABLE a, p;
ALTER TABLE b2 ADD KEY (s, i);
CREATE TABLE d LIKE b2;
INSERT INTO d VALUES (5, 'e');
-- @apply
-- @equal
DROP TABLE b2;
DELETE FROM c WHERE i = 1;
