-- Copied tables with foreign keys: a child may come before its parent; all is checked again, and cascades, after the
-- copy. What the leader's own cascade would delete while it copies must come in records.
-- @record {"uri":"flv://mysql-srv1/copied_keys","operation":{"Query":"CREATE DATABASE copied_keys"},"context":{"database":"","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/copied_keys"}]}
-- @record {"uri":"flv://mysql-srv1/copied_keys","operation":{"Query":"CREATE TABLE parent (id INT PRIMARY KEY)"},"context":{"database":"copied_keys","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/copied_keys/parent"}]}
-- @record {"uri":"flv://mysql-srv1/copied_keys","operation":{"Query":"CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)"},"context":{"database":"copied_keys","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/copied_keys/child"}]}
-- @apply
-- @follower
USE copied_keys;
INSERT INTO parent VALUES (2), (3);
INSERT INTO child VALUES (20, 2), (30, 3);
-- @record {"uri":"flv://mysql-srv1/copied_keys/child","columns":["id","p"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":10},{"SignedInteger":1}]},{"cols":[{"SignedInteger":11},{"SignedInteger":1}]},{"cols":[{"SignedInteger":30},{"SignedInteger":3}]}],"after":null,"upto":null}}}
-- @record {"uri":"flv://mysql-srv1/copied_keys/parent","columns":["id"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1}]},{"cols":[{"SignedInteger":3}]}],"after":null,"upto":{"cols":[{"SignedInteger":5}]}}}}
-- @record {"uri":"flv://mysql-srv1/copied_keys/parent","columns":["id"],"key":["id"],"flags":16,"copying":true,"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":4}]}]}}}
-- @record {"uri":"flv://mysql-srv1/copied_keys/parent","columns":["id"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"SignedInteger":5}]},"upto":null}}}
-- @record {"uri":"flv://mysql-srv1/copied_keys/parent","columns":["id"],"key":["id"],"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- @apply
-- @follower
SELECT id FROM parent;
-- = [3]
SELECT id FROM child;
-- = [30]
-- @record {"uri":"flv://mysql-srv1/copied_keys/parent","columns":["id"],"key":["id"],"copying":true,"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":3}]}]}}}
-- @apply
-- @stops cdc-consumer 3 which this leader does not log
-- @apply --skip {skip}
-- @follower
SELECT id FROM child;
-- = [30]
