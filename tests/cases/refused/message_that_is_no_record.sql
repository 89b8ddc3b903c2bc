-- The topic has a message that is no record: what came before is applied, and the stream stops.
CREATE DATABASE no_record;
CREATE TABLE no_record.t (id INT PRIMARY KEY);
INSERT INTO no_record.t VALUES (1);
-- @record {"uri":"hello"}
-- @apply
-- @stops cdc-consumer 3 not a record
-- @follower
SELECT * FROM no_record.t;
-- = [1]
