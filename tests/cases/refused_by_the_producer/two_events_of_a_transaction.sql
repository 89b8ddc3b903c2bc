-- Two refused events of one transaction: what the second stop says names both places, since none is out yet.
-- @differs two_events.base
CREATE DATABASE two_events;
-- -> {}
USE two_events;
CREATE TABLE base (i INT PRIMARY KEY, c INT);
-- -> {}
INSERT INTO base VALUES (1, 1);
-- -> {}
SET binlog_format = STATEMENT;
BEGIN;
DELETE FROM base;
UPDATE base SET c = 9;
COMMIT;
-- -> {"operation":{"Skipped":{"place":"{skip1}"}}}
-- -> {"operation":{"Skipped":{"place":"{skip2}"}}}
-- @apply
-- @stops cdc-producer 3 cdc-producer PROFILE --skip
-- @run cdc-producer --skip {skip}
-- @stops cdc-producer 3 PROFILE --skip {skip} --skip
-- @run cdc-producer --skip {skip1} --skip {skip2}
-- @run cdc-consumer
