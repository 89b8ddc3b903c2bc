-- Limits that the follower has for everybody do not bind the consumer.
-- @alone
CREATE DATABASE limits;
CREATE TABLE limits.t (id INT PRIMARY KEY, n INT UNIQUE);
-- @apply
-- @follower
SET GLOBAL transaction_read_only = ON;
SET GLOBAL max_join_size = 1;
SET GLOBAL sql_select_limit = 0;
-- @leader
INSERT INTO limits.t VALUES (1, 1);
UPDATE limits.t SET n = 2;
-- @apply
-- @follower
SELECT * FROM limits.t;
-- = [1, 2]
SET GLOBAL transaction_read_only = OFF;
SET GLOBAL max_join_size = DEFAULT;
SET GLOBAL sql_select_limit = DEFAULT;
