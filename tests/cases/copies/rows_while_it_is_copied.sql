-- Rows of a table that is being copied become what the records say, without a conflict; a row that is in the way comes
-- back with its key. Another table's conflict still stops.
-- @profile consumer consumer.on_conflict = "stop"
CREATE DATABASE while_copied;
USE while_copied;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), UNIQUE (name));
CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20));
-- @apply
-- @follower
INSERT INTO while_copied.t VALUES (2, 'x'), (5, 'b'), (9, 'seven');
-- @record {"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1},{"String":"b"}]},{"cols":[{"SignedInteger":2},{"String":"two"}]}],"after":null,"upto":{"cols":[{"SignedInteger":3}]}}}}
-- @record {"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"copying":true,"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":6},{"String":"old"}],"after_cols":[{"SignedInteger":6},{"String":"seven"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"copying":true,"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":8},{"String":"gone"}]},{"cols":[{"SignedInteger":2},{"String":"two"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"copying":true,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":5},{"String":"five"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/while_copied/u","columns":["id","name"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"one"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":5},{"String":"five"}]},{"cols":[{"SignedInteger":6},{"String":"seven"}]},{"cols":[{"SignedInteger":9},{"String":"nine"}]}],"after":{"cols":[{"SignedInteger":3}]},"upto":null}}}
-- @apply
-- @logged rows removed for rows of a table that is being copied
-- @logged row removed for a row of a table that is being copied
-- @follower
SELECT * FROM while_copied.t ORDER BY id;
-- = [1, "b"]
-- = [5, "five"]
-- = [6, "seven"]
-- = [9, "nine"]
SELECT COUNT(*) FROM cdc.conflicts WHERE resource = '{leader}';
-- = [0]
-- @record [{"uri":"flv://mysql-srv1/while_copied/t","columns":["id","name"],"key":["id"],"copying":true,"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":9},{"String":"old"}],"after_cols":[{"SignedInteger":9},{"String":"nine"}]}]}}},{"uri":"flv://mysql-srv1/while_copied/u","columns":["id","name"],"key":["id"],"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":9},{"String":"old"}],"after_cols":[{"SignedInteger":9},{"String":"nine"}]}]}}}]
-- @apply
-- @stops cdc-consumer 3 conflict: Update of id=9 in flv://{leader}/while_copied/u
