-- Chunks go by filters and renames as rows do.
-- @profile consumer renames.copied_elsewhere = "copied_elsewhere_2"
-- @profile consumer filters.exclude_tables = ["copied_elsewhere.left_out"]
CREATE DATABASE copied_elsewhere;
USE copied_elsewhere;
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9));
CREATE TABLE left_out LIKE t;
-- @apply
-- @follower
USE copied_elsewhere_2;
CREATE TABLE left_out (id INT);
INSERT INTO left_out VALUES (7);
-- @record {"uri":"flv://mysql-srv1/copied_elsewhere/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1},{"String":"a"}]}],"after":null,"upto":null}}}
-- @record {"uri":"flv://mysql-srv1/copied_elsewhere/left_out","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1},{"String":"a"}]}],"after":null,"upto":null}}}
-- @apply
-- @follower
SELECT * FROM t;
-- = [1, "a"]
SELECT * FROM left_out;
-- = [7]
