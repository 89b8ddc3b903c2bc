-- A zero in an AUTO_INCREMENT column stays one, and so does the time in a column that the server would set itself.
CREATE DATABASE zero_stays;
USE zero_stays;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00';
INSERT INTO t VALUES (0, '1970-01-01 00:00:01');
-- @apply
-- @follower
SELECT id, UNIX_TIMESTAMP(at) FROM zero_stays.t;
-- = [0, 1]
-- @leader
UPDATE t SET id = 5, at = at;
-- @apply
-- @follower
SELECT id, UNIX_TIMESTAMP(at) FROM zero_stays.t;
-- = [5, 1]
