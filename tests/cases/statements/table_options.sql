-- Options that mean nothing on another server: a tablespace that only the leader has, a password, a server to ask.
CREATE DATABASE table_options;
USE table_options;
CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd';
CREATE TABLE a (i INT PRIMARY KEY) TABLESPACE ts;
CREATE TABLE b (i INT) TABLESPACE = innodb_file_per_table;
CREATE TABLE c (i INT) PASSWORD = 'hunter2';
ALTER TABLE c PASSWORD 'hunter3', TABLESPACE `ts`;
CREATE TABLE d (i INT) PASSWORD = 'hunter2' CONNECTION = 'mysql://u:hunter2@h/d/t' ENGINE = InnoDB;
CREATE TABLE e (i INT) ENGINE = MyISAM PASSWORD = 'hunter2' CONNECTION = 'mysql://u:hunter2@h/d/t';
ALTER TABLE d ADD j INT, PASSWORD = 'hunter2' CONNECTION = 'mysql://u:hunter2@h/d/t' ENGINE = InnoDB;
ALTER TABLE e ENGINE = InnoDB;
INSERT INTO a VALUES (1), (2);
INSERT INTO b VALUES (1), (2);
INSERT INTO c VALUES (1), (2);
INSERT INTO d (i) VALUES (1), (2);
INSERT INTO e VALUES (1), (2);
-- @apply
-- @follower
SELECT s.name FROM information_schema.innodb_tables t JOIN information_schema.innodb_tablespaces s USING (space) WHERE t.name LIKE 'table_options/%' ORDER BY 1;
-- = ["table_options/a"]
-- = ["table_options/b"]
-- = ["table_options/c"]
-- = ["table_options/d"]
-- = ["table_options/e"]
-- @leader
SELECT s.name FROM information_schema.innodb_tables t JOIN information_schema.innodb_tablespaces s USING (space) WHERE t.name LIKE 'table_options/%' ORDER BY 1;
-- = ["table_options/b"]
-- = ["table_options/d"]
-- = ["table_options/e"]
-- = ["ts"]
-- = ["ts"]
-- Moved, they are defined as on the follower, which is told of it by nothing but the statement.
ALTER TABLE a TABLESPACE innodb_file_per_table;
ALTER TABLE c TABLESPACE innodb_file_per_table;
DROP TABLESPACE ts;
