-- The follower's table lacks a column, or has a narrower one: the stream stops, and goes on once the table is right.
CREATE DATABASE does_not_fit;
USE does_not_fit;
CREATE TABLE no_column (id INT PRIMARY KEY, u INT);
CREATE TABLE too_long (id INT PRIMARY KEY, u INT, name CHAR(20));
-- @apply
-- @follower
USE does_not_fit;
ALTER TABLE no_column DROP u;
ALTER TABLE too_long MODIFY name CHAR(1);
-- @leader
INSERT INTO no_column VALUES (1, 1);
-- @apply
-- @stops cdc-consumer 3 the follower refuses a row of flv://{leader}/does_not_fit/no_column
-- @stops cdc-consumer 3 Unknown column 'u'
-- @stops cdc-consumer 3 tried: INSERT INTO
-- @stops cdc-consumer 3 sequence 3, leader position binlog.
-- @follower
ALTER TABLE no_column ADD u INT;
-- @leader
INSERT INTO too_long VALUES (1, 1, 'long');
-- @apply
-- @stops cdc-consumer 3 the follower refuses a row of flv://{leader}/does_not_fit/too_long
-- @stops cdc-consumer 3 Data too long
-- @stops cdc-consumer 3 tried: INSERT INTO
-- @stops cdc-consumer 3 sequence 4, leader position binlog.
-- @follower
ALTER TABLE too_long MODIFY name CHAR(20);
-- @apply
