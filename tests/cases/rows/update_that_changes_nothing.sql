-- An update whose rows are the same before and after, which no leader logs of its own, is no conflict.
CREATE DATABASE changes_nothing;
CREATE TABLE changes_nothing.t (id INT PRIMARY KEY);
INSERT INTO changes_nothing.t VALUES (1);
-- @record {"uri":"flv://mysql-srv1/changes_nothing/t","columns":["id"],"key":["id"],"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1}],"after_cols":[{"SignedInteger":1}]}]}}}
-- @apply
-- @logged conflicts=0
-- @follower
SELECT * FROM changes_nothing.t;
-- = [1]
