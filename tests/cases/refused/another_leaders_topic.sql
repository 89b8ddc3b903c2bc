-- The topic holds records of a leader of another name.
CREATE DATABASE of_another_leader;
-- @record {"uri":"flv://other/never","operation":{"Query":"CREATE DATABASE never"},"context":{"database":"","sql_mode":"STRICT_TRANS_TABLES"},"affects":[{"action":"CreateDatabase","uri":"flv://other/never"}]}
-- @apply
-- @stops cdc-consumer 2 the topic holds records of leader 'other', not of '{leader}'; at {leader}/0/
-- @follower
SHOW DATABASES LIKE 'never';
-- = nothing
