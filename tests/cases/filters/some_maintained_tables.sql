-- Several tables are maintained in one statement, of which some are left out: the follower has it for the others.
-- @profile producer filters.exclude_tables = ["upkept.secret*"]
-- @profile consumer filters.exclude_tables = ["upkept.secret*", "upkept.here"]
-- @differs upkept.secret upkept.here
CREATE DATABASE upkept;
-- -> {}
USE upkept;
CREATE TABLE a (i INT);
-- -> {}
CREATE TABLE secret (i INT);
CREATE TABLE here (i INT);
-- -> {}
SET sql_mode = 'ANSI_QUOTES';
OPTIMIZE TABLE "a", secret, here;
-- -> {"operation":{"Query":"OPTIMIZE TABLE `upkept`.`a`, `upkept`.`here`"}}
ANALYZE TABLE secret;
REPAIR TABLE secret, a QUICK;
-- -> {"operation":{"Query":"REPAIR TABLE `upkept`.`a` QUICK"},"affects":[{"action":"MaintainTable","uri":"flv://mysql-srv1/upkept/a"}]}
-- @apply
-- @logged statement applied … statement="OPTIMIZE TABLE `upkept`.`a`"
