-- After each stop the producer goes on without gap or repeat.
CREATE DATABASE after_each_stop;
-- -> {"sequence":0}
CREATE TABLE after_each_stop.a (i INT PRIMARY KEY);
-- -> {"sequence":1}
INSERT INTO after_each_stop.a VALUES (0);
-- -> {"sequence":2,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":0}]}]}}}
-- @apply
INSERT INTO after_each_stop.a VALUES (1);
-- -> {"sequence":3,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1}]}]}}}
-- @apply
-- @apply
INSERT INTO after_each_stop.a VALUES (2);
-- -> {"sequence":4,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":2}]}]}}}
