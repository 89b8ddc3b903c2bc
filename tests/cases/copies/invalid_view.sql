-- A view whose table is gone is left out of a leader's copy, and said to be; one that is valid is in it.
-- @profile producer filters.include_dbs = ["invalid_view"]
-- @profile producer producer.start = "copy"
-- @differs invalid_view.of_u
CREATE DATABASE invalid_view;
USE invalid_view;
CREATE TABLE t (id INT PRIMARY KEY);
CREATE TABLE u (id INT);
CREATE VIEW of_t AS SELECT * FROM t;
CREATE VIEW of_u AS SELECT * FROM u;
DROP TABLE u;
-- @start
-- @logged a view is invalid, and left out view=invalid_view.of_u
-- @run cdc-consumer
