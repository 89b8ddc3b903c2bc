-- An XA transaction that was prepared before the stream's beginning, where its rows are, stops it by its commit.
-- @profile producer filters.include_dbs = ["prepared_early"]
CREATE DATABASE prepared_early;
CREATE TABLE prepared_early.t (i INT PRIMARY KEY);
XA START 'e';
INSERT INTO prepared_early.t VALUES (1);
XA END 'e';
XA PREPARE 'e';
-- @start
XA COMMIT 'e';
-- @apply
-- @stops cdc-producer 3 XA transaction X'65',X'',1 commits, but it was prepared before the producer's start
