-- To a follower with names as they are given, the leader's statements would make other tables than those of its rows.
-- @server leader --lower-case-table-names=1
-- @differs
CREATE DATABASE Names_There;
CREATE TABLE Names_There.Orders (i INT PRIMARY KEY);
-- @apply
-- @stops cdc-consumer 2 the leader has lower_case_table_names = 1 and the follower 0 … initialise a follower with lower_case_table_names = 1
-- @follower
SHOW DATABASES LIKE 'names_there';
-- = nothing
