-- The position moves on while the filters let nothing through.
-- @profile producer filters.include_dbs = ["moves_on"]
-- @differs not_here
CREATE DATABASE moves_on;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/moves_on"}]}
CREATE DATABASE not_here;
CREATE TABLE not_here.a (i INT);
INSERT INTO not_here.a VALUES (1);
FLUSH BINARY LOGS;
INSERT INTO not_here.a VALUES (2);
SHOW BINARY LOG STATUS;
-- @as file offset
-- @apply
-- @run cdc-producer
-- @logged replicating … position={file}:{offset} gtids=
