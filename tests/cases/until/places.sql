-- The consumer runs until a sequence, a GTID or a time: whole transactions of the leader, and nothing behind them.
CREATE DATABASE until_places;
USE until_places;
CREATE TABLE t (id INT PRIMARY KEY);
INSERT INTO t VALUES (2);
BEGIN;
INSERT INTO t VALUES (3);
INSERT INTO t VALUES (4);
INSERT INTO t VALUES (5);
COMMIT;
SELECT CONCAT(@@server_uuid, ':', @last := CAST(SUBSTRING_INDEX(@@gtid_executed, '-', -1) AS SIGNED)), CONCAT(@@server_uuid, ':', @last + 1), DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ');
-- @as last next moment
INSERT INTO t VALUES (6);
-- @apply --until 4
-- @logged the place is reached until=4 sequence=2 next_sequence=3 next_transaction={last} … inside of it
-- @follower
SELECT * FROM until_places.t;
-- = [2]
-- @run cdc-consumer --until {moment}
-- @logged sequence=5 next_sequence=6
-- @follower
SELECT sequence FROM cdc.checkpoint WHERE resource = '{leader}' AND worker = 0;
-- = [5]
-- @run cdc-consumer --until 4
-- @stops cdc-consumer 2 the follower has passed 4: it is at sequence 5
-- @run cdc-consumer --until 2024-11-20T19:00:00.000001+01:00
-- @stops cdc-consumer 2 the follower has passed 2024-11-20T19:00:00.000001+01:00: it is at sequence 5
-- @run cdc-consumer --until {last}
-- @stops cdc-consumer 2 is in no record after sequence 5
-- @run cdc-consumer --until {next}
-- @logged sequence=5 next_sequence=6
-- @run cdc-consumer --until 6
-- @logged next="not in the topic yet"
-- @run cdc-consumer --until 6
-- @logged next="not in the topic yet"
-- @run cdc-consumer --until 7 --until-current
-- @logged warning the place is not reached until=7 sequence=6
