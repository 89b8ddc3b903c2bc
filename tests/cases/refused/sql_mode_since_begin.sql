-- A session changed its sql_mode since BEGIN, whose mode the records name. What it then computed is stored, or stops.
CREATE DATABASE since_begin;
USE since_begin;
CREATE TABLE cut (id INT PRIMARY KEY, d DATETIME(3), v DATETIME AS (d), g DATETIME AS (v + INTERVAL 0 DAY) STORED);
CREATE TABLE padded (id INT PRIMARY KEY, t CHAR(3), g VARCHAR(9) AS (CONCAT(t, 'x')) STORED);
-- A virtual column from a padded text has another value when it is read than when it was written.
CREATE TABLE wide (id INT PRIMARY KEY, t CHAR(3), g VARCHAR(9) CHARACTER SET cp1251 AS (t));
-- @record {"uri":"flv://mysql-srv1/since_begin/cut","columns":["id","d","g"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"DateTime":{"year":2024,"month":2,"day":1,"hour":0,"minute":0,"second":0,"subsecond":600000}},{"DateTime":{"year":2024,"month":2,"day":1,"hour":0,"minute":0,"second":0,"subsecond":0}}]}]}}}
-- @record {"uri":"flv://mysql-srv1/since_begin/padded","columns":["id","t","g"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"a"},{"String":"a  x"}]}]}}}
-- @record {"uri":"flv://mysql-srv1/since_begin/wide","columns":["id","t","g"],"key":["id"],"sql_mode":"PAD_CHAR_TO_FULL_LENGTH","operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"ß"},{"Text":{"charset":"cp1251","base64":"PyAg"}}]}]}}}
-- @apply
-- @follower
USE since_begin;
SELECT CAST(g AS CHAR) FROM cut;
-- = ["2024-02-01 00:00:00"]
SELECT g FROM padded;
-- = ["a  x"]
SELECT t FROM wide;
-- = ["ß"]
-- @record {"uri":"flv://mysql-srv1/since_begin/padded","columns":["id","t","g"],"key":["id"],"sql_mode":"PAD_CHAR_TO_FULL_LENGTH","operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1},{"String":"a"},{"String":"a  x"}],"after_cols":[{"SignedInteger":1},{"String":"b"},{"String":"b  x"}]}]}}}
-- @apply
-- @follower
SELECT t, g FROM padded;
-- = ["b", "b  x"]
-- @record {"uri":"flv://mysql-srv1/since_begin/padded","columns":["id","t","g"],"key":["id"],"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1},{"String":"b"},{"String":"b  x"}],"after_cols":[{"SignedInteger":1},{"String":"b"},{"String":"c"}]}]}}}
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
