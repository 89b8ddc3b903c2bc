-- A record names an sql_mode that no producer writes: nothing of it runs.
CREATE DATABASE mode_of_rows;
CREATE TABLE mode_of_rows.t (id INT PRIMARY KEY, g INT AS (id) STORED);
-- @record {"uri":"flv://mysql-srv1/mode_of_rows/t","columns":["id","g"],"key":["id"],"sql_mode":"'; DROP TABLE t; '","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"SignedInteger":1}]}]}}}
-- @apply
-- @stops cdc-consumer 3 not the sql_mode of a rows record
-- @follower
SELECT * FROM mode_of_rows.t;
-- = nothing
