-- A table of which refused records are left ends to be one with its copy, also where the consumer was started again amid
-- that copy, with the same option: what is refused afterwards stops it.
-- @differs
CREATE DATABASE left_amid;
CREATE TABLE left_amid.t (id INT PRIMARY KEY, name VARCHAR(9));
-- @apply
-- @follower
ALTER TABLE left_amid.t MODIFY name VARCHAR(3);
-- @record {"uri":"flv://mysql-srv1/left_amid/t","columns":["id","name"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"longer"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/left_amid/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1},{"String":"a"}]}],"after":null,"upto":{"cols":[{"SignedInteger":5}]}}}}
-- @apply --skip left_amid.t --until 3
-- @logged record skipped sequence=2
-- @record {"uri":"flv://mysql-srv1/left_amid/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":9},{"String":"i"}]}],"after":{"cols":[{"SignedInteger":5}]},"upto":null}}}
-- @record {"uri":"flv://mysql-srv1/left_amid/t","columns":["id","name"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2},{"String":"longer"}]}]}}}
-- @apply --skip left_amid.t
-- @stops cdc-consumer 3 name is varchar(3) … to do without this record for good: cdc-consumer PROFILE --skip 5
