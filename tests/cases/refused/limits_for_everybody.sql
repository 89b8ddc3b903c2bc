-- What the follower has set for everybody binds neither the consumer's rows nor what it asks.
-- @alone
CREATE DATABASE limits;
CREATE TABLE limits.t (id INT PRIMARY KEY, n INT UNIQUE, b MEDIUMBLOB);
CREATE TABLE limits.keyless (n INT, s VARCHAR(9));
SET SESSION sql_generate_invisible_primary_key = ON;
CREATE TABLE limits.hidden (n INT, s VARCHAR(9));
INSERT INTO limits.hidden VALUES (1, 'p');
-- @apply
-- @follower
SET GLOBAL transaction_read_only = ON;
SET GLOBAL max_join_size = 1;
SET GLOBAL sql_select_limit = 0;
SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF;
SET GLOBAL completion_type = 'RELEASE';
SET GLOBAL max_execution_time = 1;
SET GLOBAL binlog_format = 'STATEMENT';
SET GLOBAL sql_safe_updates = ON;
SET GLOBAL sql_auto_is_null = ON;
SET GLOBAL max_binlog_cache_size = 1048576;
-- @leader
INSERT INTO limits.t VALUES (1, 1, NULL);
UPDATE limits.t SET n = 2;
INSERT INTO limits.keyless SELECT 1, 'a' FROM information_schema.COLUMNS LIMIT 100;
DELETE FROM limits.keyless LIMIT 10;
-- Two of these are a batch that the binlog's cache takes, four are more.
INSERT INTO limits.t VALUES (10, 10, REPEAT('a', 300000));
INSERT INTO limits.t VALUES (11, 11, REPEAT('b', 300000));
INSERT INTO limits.t VALUES (12, 12, REPEAT('c', 300000));
INSERT INTO limits.t VALUES (13, 13, REPEAT('d', 300000));
INSERT INTO limits.t VALUES (14, 14, REPEAT('e', 300000));
-- @apply
-- @run cdc-producer --copy limits.hidden
-- @apply
-- @follower
SELECT n FROM limits.t WHERE id = 1;
-- = [2]
SET GLOBAL transaction_read_only = DEFAULT;
SET GLOBAL max_join_size = DEFAULT;
SET GLOBAL sql_select_limit = DEFAULT;
SET GLOBAL show_gipk_in_create_table_and_information_schema = DEFAULT;
SET GLOBAL completion_type = DEFAULT;
SET GLOBAL max_execution_time = DEFAULT;
SET GLOBAL binlog_format = DEFAULT;
SET GLOBAL sql_safe_updates = DEFAULT;
SET GLOBAL sql_auto_is_null = DEFAULT;
SET GLOBAL max_binlog_cache_size = DEFAULT;
