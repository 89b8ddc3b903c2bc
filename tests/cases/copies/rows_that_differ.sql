-- A copied table: rows that the follower lacks, has otherwise or has besides become those of the chunks, without a
-- conflict. A row that is equal is not written again; what is behind the last chunk goes, too.
CREATE DATABASE copied_rows;
CREATE TABLE copied_rows.t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20));
-- @apply
-- @follower
USE copied_rows;
INSERT INTO t VALUES (1, 'a'), (2, 'old'), (3, 'gone'), (9, 'same'), (12, 'ahead'), (99, 'gone');
-- @record {"uri":"flv://mysql-srv1/copied_rows/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":1},{"String":"a"}]},{"cols":[{"SignedInteger":2},{"String":"b"}]},{"cols":[{"SignedInteger":4},{"String":"d"}]},{"cols":[{"SignedInteger":12},{"String":"moved"}]}],"after":null,"upto":{"cols":[{"SignedInteger":5}]}}}}
-- @record {"uri":"flv://mysql-srv1/copied_rows/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[],"after":{"cols":[{"SignedInteger":5}]},"upto":{"cols":[{"SignedInteger":8}]}}}}
-- @record {"uri":"flv://mysql-srv1/copied_rows/t","columns":["id","name"],"key":["id"],"flags":2,"operation":{"Copy":{"rows":[{"cols":[{"SignedInteger":9},{"String":"same"}]},{"cols":[{"SignedInteger":12},{"String":"moved"}]}],"after":{"cols":[{"SignedInteger":8}]},"upto":null}}}
-- @apply
-- @logged missing=1 different=2 extra=1
-- @logged table copied
-- @logged rows=6 missing=1 different=2 extra=2
-- @follower
SELECT * FROM t ORDER BY id;
-- = [1, "a"]
-- = [2, "b"]
-- = [4, "d"]
-- = [9, "same"]
-- = [12, "moved"]
SELECT COUNT(*) FROM cdc.conflicts WHERE resource = '{leader}';
-- = [0]
-- The next number is behind the row that went.
INSERT INTO t (name) VALUES ('new');
SELECT MAX(id) FROM t;
-- = [100]
