-- Temporary tables under binlog_format = ROW and their end do no harm, nor does what a database that the filters leave
-- out has in other formats.
-- @profile producer filters.include_dbs = ["harmless"]
-- @differs elsewhere
CREATE DATABASE harmless;
USE harmless;
CREATE TABLE base (i INT PRIMARY KEY, c INT);
INSERT INTO base VALUES (1, 1);
CREATE TEMPORARY TABLE base (i INT, x INT);
INSERT INTO base VALUES (7, 7);
ALTER TABLE base ADD y INT;
CREATE TABLE alike LIKE base;
CREATE TABLE filled SELECT * FROM base;
CREATE TABLE gone (i INT);
TRUNCATE base;
DROP TABLE base, gone;
DROP TEMPORARY TABLE IF EXISTS base;
INSERT INTO base VALUES (2, 2);
SHOW TABLES;
-- = ["alike"]
-- = ["base"]
-- = ["filled"]
CREATE DATABASE elsewhere;
USE elsewhere;
CREATE TABLE listed (i INT PRIMARY KEY, c INT);
SET binlog_format = STATEMENT;
CREATE TEMPORARY TABLE base (i INT, c INT);
TRUNCATE base;
ALTER TABLE base DROP COLUMN c;
CREATE INDEX k ON base (i);
CREATE TABLE new LIKE base;
ALTER TABLE base RENAME base2;
CREATE TABLE filled SELECT UUID() AS u;
CREATE TABLE filled2 (i INT) ENGINE = InnoDB IGNORE AS ((TABLE listed));
CREATE TABLE filled3 (VALUES ROW(1, CONNECTION_ID()));
ALTER TABLE listed ADD u VARCHAR(36) DEFAULT (UUID());
DROP TABLE base2;
ALTER TABLE harmless.base ADD d INT;
-- @apply
-- @follower
SHOW DATABASES LIKE 'elsewhere';
-- = nothing
