-- Statements about accounts are named in the producer's log and are nowhere else; no password or hash is anywhere.
CREATE DATABASE accounts;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/accounts"}]}
USE accounts;
CREATE TABLE a (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/accounts/a"}]}
CREATE USER keeper IDENTIFIED BY 'hunter2';
CREATE USER 'keeper'@'10.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'hunter2', keeper2 IDENTIFIED BY 'x';
ALTER USER keeper IDENTIFIED BY 'hunter2';
SET PASSWORD FOR keeper = 'hunter2';
CREATE ROLE keepers;
GRANT keepers TO keeper;
GRANT SELECT ON accounts.* TO keeper;
SET DEFAULT ROLE keepers TO keeper;
REVOKE keepers FROM keeper;
RENAME USER keeper2 TO keeper3;
CREATE SERVER away FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', HOST 'h', PASSWORD 'hunter2');
DROP SERVER away;
DROP USER keeper, 'keeper'@'10.0.0.1', keeper3;
DROP ROLE keepers;
FLUSH TABLES;
-- @apply
-- @logged cdc-producer kind=account statement="CREATE USER keeper@%"
-- @logged cdc-producer statement="CREATE USER keeper@10.0.0.1, keeper2@%"
-- @logged cdc-producer kind=account statement="ALTER USER keeper@%" … statement="ALTER USER keeper@%"
-- @logged cdc-producer statement="GRANT keeper@%"
-- @logged cdc-producer statement="RENAME USER keeper2, keeper3"
-- @logged cdc-producer kind=admin statement="FLUSH TABLES"
-- @silent cdc-producer hunter2
-- @silent cdc-producer $A$
