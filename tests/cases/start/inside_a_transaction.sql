-- A place to start from that is inside of a transaction.
-- @server leader --gtid-mode=OFF --enforce-gtid-consistency=OFF
CREATE DATABASE inside_one;
CREATE TABLE inside_one.a (i INT PRIMARY KEY);
SHOW BINARY LOG STATUS;
-- @as file begin
INSERT INTO inside_one.a VALUES (1);
SHOW BINLOG EVENTS IN '{file}' FROM {begin} LIMIT 2, 1;
-- @as file inside kind
SELECT '{kind}';
-- = ["Table_map"]
-- @profile producer producer.start = "{file}:{inside}"
-- @start
-- @stops cdc-producer 3 transaction
