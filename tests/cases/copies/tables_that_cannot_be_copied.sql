-- Tables that can't be copied are named before anything is asked of the producer.
-- @profile producer filters.include_dbs = ["not_copied"]
CREATE DATABASE not_copied;
USE not_copied;
CREATE TABLE part (id INT PRIMARY KEY, e ENUM('?'));
CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM;
-- @start
-- @run cdc-producer --copy not_copied.none
-- @stops cdc-producer 2 no table that passes the filters matches not_copied.none
-- @run cdc-producer --copy not_copied.*
-- @stops cdc-producer 2 2 of 2: 
-- @stops cdc-producer 2 not_copied.part: column e has a member with a question mark
-- @stops cdc-producer 2 not_copied.old: its engine is MyISAM
-- @run cdc-producer --copy-status
-- @logged nothing is to be copied
-- @differs
