-- A table that can't be copied is left out of a copy of the leader, and named; all others are copied. Once it is another
-- one it is asked for. Where no table is left, the request is refused.
-- @newer leader members of an ENUM that 8.0 shows with question marks
-- @profile producer filters.include_dbs = ["not_copied"]
-- @profile producer producer.start = "copy"
CREATE DATABASE not_copied;
USE not_copied;
CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM;
INSERT INTO old VALUES (1), (2);
CREATE TABLE fine (id INT PRIMARY KEY);
INSERT INTO fine VALUES (1), (2);
-- Members that the leader shows with question marks, and those that have some.
CREATE TABLE members (id INT PRIMARY KEY, e ENUM('a😀', '?', '''\\', 'ж', '😀?') CHARACTER SET utf8mb4 DEFAULT 'a😀', s SET('?', '😀', 'ж') CHARACTER SET utf8mb4 NOT NULL, g ENUM('?', '😀') CHARACTER SET gb18030, a SET('?', 'b') CHARACTER SET ascii, u ENUM('😀', '?') CHARACTER SET utf16);
INSERT INTO members VALUES (1, DEFAULT, '😀,?', '😀', 'b', '😀'), (2, 2, 1, 1, 1, 2), (3, 3, 7, 2, 3, 1), (4, 5, 0, NULL, NULL, NULL);
-- @start
-- @logged a table can't be copied table=not_copied.old why="its engine is MyISAM … its copy is not complete" … --copy not_copied.old
-- @logged copied a table table=not_copied.fine rows=2
-- @logged copied a table table=not_copied.members rows=4
-- @run cdc-consumer
SELECT e, s, g, a, u FROM not_copied.members ORDER BY id;
-- @both
SHOW CREATE TABLE not_copied.members;
-- @both
INSERT INTO members VALUES (5, '😀?', '😀,ж', '?', '?,b', '?');
-- @run cdc-producer --copy not_copied.none
-- @stops cdc-producer 2 no table that passes the filters matches not_copied.none
-- @run cdc-producer --copy not_copied.o*
-- @stops cdc-producer 2 1 of 1: 
-- @stops cdc-producer 2 not_copied.old: its engine is MyISAM
-- @run cdc-producer --copy-status
-- @logged nothing is to be copied
-- @run cdc-producer --copy not_copied.* --until-current
-- @logged a table can't be copied table=not_copied.old why="its engine is MyISAM
-- @logged asked for a copy tables=2
-- @logged all tables are copied
ALTER TABLE old ENGINE = InnoDB;
-- @run cdc-producer --copy not_copied.old --until-current
-- @logged copied a table table=not_copied.old rows=2
-- @apply
SELECT e + 0, HEX(s), HEX(g), u FROM not_copied.members ORDER BY id;
-- @both
