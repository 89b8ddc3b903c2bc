-- A record's position is that of its event in the server's binlog.
-- @newer leader SHOW BINARY LOG STATUS
CREATE DATABASE positions;
-- -> {}
USE positions;
SHOW BINARY LOG STATUS;
-- @as file1 at1
CREATE TABLE a (i INT PRIMARY KEY);
SHOW BINLOG EVENTS IN '{file1}' FROM {at1} LIMIT 1, 1;
-- @as file created query
SELECT '{query}';
-- = ["Query"]
-- -> {"operation":{"Query":"CREATE TABLE a (i INT PRIMARY KEY)"},"bn_file":{"fileName":"{file1}","offset":{created}}}
SHOW BINARY LOG STATUS;
-- @as file2 at2
INSERT INTO a VALUES (1);
SHOW BINLOG EVENTS IN '{file2}' FROM {at2} LIMIT 3, 1;
-- @as file inserted write
SELECT '{write}';
-- = ["Write_rows"]
-- -> {"operation":{"Add":{}},"bn_file":{"fileName":"{file2}","offset":{inserted}}}
FLUSH BINARY LOGS;
SHOW BINARY LOG STATUS;
-- @as file3 at3
BEGIN;
INSERT INTO a VALUES (2);
DELETE FROM a WHERE i = 1;
COMMIT;
SHOW BINLOG EVENTS IN '{file3}' FROM {at3} LIMIT 3, 1;
-- @as file second write
SHOW BINLOG EVENTS IN '{file3}' FROM {at3} LIMIT 5, 1;
-- @as file deleted delete
SELECT '{write}', '{delete}', '{file3}' > '{file2}';
-- = ["Write_rows", "Delete_rows", 1]
-- -> {"operation":{"Add":{}},"bn_file":{"fileName":"{file3}","offset":{second}},"transaction":{"index":0,"last":false}}
-- -> {"operation":{"Delete":{}},"bn_file":{"fileName":"{file3}","offset":{deleted}},"transaction":{"index":1,"last":true}}
