-- A leader of MySQL 8.0, and a newer follower, which does not take some of its statements: the stop names the versions,
-- and rows go on in tables that were made by hand in another form.
-- @server leader 8.0
CREATE DATABASE statements_of_80;
USE statements_of_80;
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), h CHAR(32) AS (MD5(a)) STORED);
INSERT INTO t (id, a) VALUES (1, 'a');
CREATE TABLE words (qualify INT PRIMARY KEY, `library` INT);
-- These words are names in 8.0, wherever they stand, and are written in backquotes to the follower.
CREATE TABLE library (External INT PRIMARY KEY, tablesample INT DEFAULT 7, KEY qualify (tablesample), c CHAR(9) DEFAULT 'library');
ALTER TABLE library ADD COLUMN n INT AS (library.tablesample + 1) STORED, RENAME INDEX qualify TO external;
INSERT INTO library (External) VALUES (1);
CREATE PROCEDURE external(library INT) library: BEGIN DECLARE qualify INT; SET qualify = library; LEAVE library; END library;
CREATE VIEW qualify AS SELECT tablesample.external FROM library tablesample;
INSERT INTO words VALUES (1, 2);
CREATE VIEW v AS SELECT SHA1('a') AS s;
INSERT INTO words VALUES (2, 3);
-- @differs statements_of_80
-- @apply
-- @stops cdc-consumer 3 disallowed function: `MD5` … the follower is MySQL 9. … and the leader, which took it, MySQL 8.0. … as a plain column of its type … --skip 1
-- @follower
CREATE TABLE statements_of_80.t (id INT PRIMARY KEY, a VARCHAR(9), h CHAR(32));
-- @run cdc-consumer --skip 1
-- @stops cdc-consumer 3 SHA1 does not exist … the follower is MySQL 9. … --skip
-- @run cdc-consumer --skip {skip}
SELECT * FROM statements_of_80.t;
-- = [1, "a", "0cc175b9c0f1b6a831c399e269772661"]
SELECT * FROM statements_of_80.`library`;
-- = [1, 7, "library", 8]
SELECT * FROM statements_of_80.`qualify`;
-- = [1]
CALL statements_of_80.`external`(1);
-- = nothing
SELECT * FROM statements_of_80.words;
-- = [1, 2]
-- = [2, 3]
