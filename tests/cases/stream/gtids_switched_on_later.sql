-- GTIDs that are switched on step by step while the stream goes on repeat nothing and leave nothing out.
-- @server leader --gtid-mode=OFF --enforce-gtid-consistency=ON
CREATE DATABASE switched;
-- -> {"sequence":0}
CREATE TABLE switched.a (i INT PRIMARY KEY);
-- -> {"sequence":1}
INSERT INTO switched.a VALUES (1);
-- -> {"sequence":2,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- @apply
SET GLOBAL gtid_mode = OFF_PERMISSIVE;
INSERT INTO switched.a VALUES (2);
-- -> {"sequence":3,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2}]}]}}}
-- @apply
SET GLOBAL gtid_mode = ON_PERMISSIVE;
INSERT INTO switched.a VALUES (3);
-- -> {"sequence":4,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3}]}]}}}
-- @apply
SET GLOBAL gtid_mode = ON;
INSERT INTO switched.a VALUES (4);
-- -> {"sequence":5,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":4}]}]}}}
-- @apply
INSERT INTO switched.a VALUES (5);
-- -> {"sequence":6,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":5}]}]}}}
-- @apply
INSERT INTO switched.a VALUES (6);
-- -> {"sequence":7,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":6}]}]}}}
