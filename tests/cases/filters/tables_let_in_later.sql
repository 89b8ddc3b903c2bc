-- Filters that let in what they left out before: it is copied, or refused by name where it can't be; nothing is missing
-- in silence.
-- @profile producer filters.include_dbs = ["opened"]
-- @profile producer filters.exclude_tables = ["opened.out*"]
-- @differs opened.out00 opened.out01 opened.out02 opened.out03 opened.out04 opened.out05 opened.out06 opened.out07 opened.out08 opened.out09 opened.out10 opened.out11
SET sql_log_bin = 0;
CREATE USER opens IDENTIFIED BY 'x';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO opens;
SET sql_log_bin = 1;
SELECT @@port;
-- @as port
CREATE DATABASE opened;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/opened"}]}
USE opened;
CREATE TABLE a (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/opened/a"}]}
CREATE TABLE b (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/opened/b"}]}
CREATE TABLE out00 (i INT);
CREATE TABLE out01 (i INT);
CREATE TABLE out02 (i INT);
CREATE TABLE out03 (i INT);
CREATE TABLE out04 (i INT);
CREATE TABLE out05 (i INT);
CREATE TABLE out06 (i INT);
CREATE TABLE out07 (i INT);
CREATE TABLE out08 (i INT);
CREATE TABLE out09 (i INT);
CREATE TABLE out10 (i INT);
CREATE TABLE out11 (i INT) ENGINE = MyISAM;
INSERT INTO out03 VALUES (1);
INSERT INTO a VALUES (1);
-- -> {"uri":"flv://mysql-srv1/opened/a","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- @apply
-- What can't be copied is refused by name.
-- @profile producer filters.exclude_tables = []
-- @run cdc-producer
-- @stops cdc-producer 2 1 of 12: opened.out11: its engine is MyISAM
-- @stops cdc-producer 2 exclude_tables was opened.out*, is empty
-- @stops cdc-producer 2 opened.out00, opened.out01
-- @stops cdc-producer 2 opened.out09 and 2 more, 12 in all
-- @stops cdc-producer 2 --accept-filters
-- @silent opened.out10
-- @silent opened.a
-- Who sees no tables can't say that there is none.
-- @profile producer database.user = "opens"
-- @profile producer database.password = "x"
-- @run cdc-producer
-- @stops cdc-producer 2 GRANT SELECT ON *.*
-- @profile producer database.user = "fluvio"
-- @profile producer database.password = "fluvio4cdc!"
-- The way back.
-- @profile producer filters.exclude_tables = ["opened.out*"]
-- @run cdc-producer
-- Nothing is there that was left out, or less passes.
-- @profile producer filters.exclude_tables = ["opened.out*", "opened.none"]
-- @run cdc-producer
-- @logged newly_included=none
-- @profile producer filters.exclude_tables = ["opened.out*"]
-- @run cdc-producer
-- @logged newly_included="none that exists"
-- A database that is let in is told of as well where it has no tables.
CREATE DATABASE opened_empty;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/opened_empty"}]}
-- @profile producer filters.include_dbs = ["opened*"]
-- @run cdc-producer
-- @logged newly_included=opened_empty they
-- The way on, without copies: the first start asks, later ones need not.
-- @profile producer filters.include_dbs = ["opened"]
-- @profile producer filters.exclude_tables = []
-- @run cdc-producer --accept-filters
-- @logged the filters were changed
-- @logged opened.out09 and 2 more
INSERT INTO out03 VALUES (2);
-- -> {"uri":"flv://mysql-srv1/opened/out03","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2}]}]}}}
-- @run cdc-producer
-- @silent filters
-- @follower
CREATE TABLE opened.out03 (i INT);
-- @run cdc-consumer
-- @leader
DROP USER opens;
