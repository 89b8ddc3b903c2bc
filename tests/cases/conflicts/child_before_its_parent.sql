-- A row whose parent is still to be copied is not refused, in one statement for many rows or row by row as here: the
-- leader has checked it.
-- @profile consumer log.level = "debug"
CREATE DATABASE child_before;
USE child_before;
CREATE TABLE t (id INT PRIMARY KEY);
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
-- @record [{"uri":"flv://mysql-srv1/child_before/t","columns":["id"],"key":["id"],"flags":16,"operation":{"Delete":{"rows":[{"cols":[{"SignedInteger":1}]}]}}},{"uri":"flv://mysql-srv1/child_before/child","columns":["id","p"],"key":["id"],"flags":16,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":20},{"SignedInteger":2}]}]}}}]
-- @apply
-- @conflict child_before/t key=id=1
-- @logged row by row
-- @follower
SELECT * FROM child_before.child;
-- = [20, 2]
