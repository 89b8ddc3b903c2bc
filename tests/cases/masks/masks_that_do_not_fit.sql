-- A column of a key, or one that others are computed of, can't be masked: at the start, and where a statement makes it one.
-- @profile producer filters.include_dbs = ["masks_unfit"]
-- @profile producer filters.mask_columns = { "masks_unfit.t.email" = "null" }
CREATE DATABASE masks_unfit;
USE masks_unfit;
CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(40));
INSERT INTO t VALUES (1, 'ann@secret');
-- @apply
-- @leader
ALTER TABLE t RENAME COLUMN email TO mail;
-- @apply
-- @stops cdc-producer 3 column masks_unfit.t.email and column mail are masked in different ways
ALTER TABLE t RENAME COLUMN mail TO email;
-- @profile producer filters.mask_columns = { "masks_unfit.t.*mail" = "null" }
CREATE TABLE made LIKE t;
-- @apply
-- @stops cdc-producer 3 table masks_unfit.made and table masks_unfit.t are masked in different ways
-- @profile producer filters.mask_columns = { "masks_unfit.*.*mail" = "null" }
-- @apply
ALTER TABLE t ADD at_home VARCHAR(40) AS (SUBSTRING_INDEX(email, '@', -1));
INSERT INTO t (id, email) VALUES (2, 'bob@secret');
-- @apply
-- @stops cdc-producer 2 column email can't be masked: column at_home is computed from it
-- @silent secret
ALTER TABLE t DROP at_home;
-- @apply
-- @stops cdc-producer 3 column at_home may have been computed from a masked one
-- @silent secret
-- @run cdc-producer --skip {skip}
ALTER TABLE t ADD UNIQUE by_mail (email);
-- @apply
-- @stops cdc-producer 2 column email can't be masked: it is in the unique key
DROP TABLE t;
-- @profile consumer filters.mask_columns = { "masks_unfit.t.email" = "null" }
-- @run cdc-consumer
-- @stops cdc-consumer 2 a consumer masks no columns
