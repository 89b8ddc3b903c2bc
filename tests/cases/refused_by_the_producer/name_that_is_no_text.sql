-- A name with bytes that are no letter stops the producer, since nobody can say whether it passes the filters.
-- @profile producer filters.include_dbs = ["lost_name"]
-- @differs
CREATE DATABASE lost_name;
-- -> {}
USE lost_name;
SET NAMES cp932;
CREATE TABLE `b{hex 80}` (i INT);
-- -> {"affects":[{"action":"SkipDatabase","uri":"flv://mysql-srv1/lost_name"}]}
-- @apply
-- @stops cdc-producer 3 a statement's text in cp932 cannot be read: a name in it
-- @run cdc-producer --skip {skip}
CREATE TABLE `c{hex 80}` (i INT);
-- @apply
-- @stops cdc-producer 3 a statement's text in cp932 cannot be read: a name in it
-- @profile producer filters.include_dbs = ["another"]
-- @run cdc-producer
