-- A follower that gives tables without a key an invisible one gives none to the leader's tables.
-- @alone
CREATE DATABASE no_hidden_key;
-- @follower
SET GLOBAL sql_generate_invisible_primary_key = ON;
-- @leader
USE no_hidden_key;
CREATE TABLE t (i INT);
INSERT INTO t VALUES (1), (1);
DELETE FROM t LIMIT 1;
-- @apply
-- @follower
SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'no_hidden_key';
-- = [1]
