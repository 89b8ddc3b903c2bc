-- MySQL 8.0 does not log what foreign keys change, so where rows of their parent can't be read, the tables that follow it
-- are copied, too.
-- @server leader 8.0
-- @profile producer producer.on_unrepeatable = "copy"
CREATE DATABASE unreadable_parent;
USE unreadable_parent;
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE SET NULL);
CREATE TABLE stays (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id));
INSERT INTO parent VALUES (1, 1), (2, 2);
INSERT INTO child VALUES (11, 1), (12, 2);
INSERT INTO grandchild VALUES (21, 11), (22, 12);
INSERT INTO stays VALUES (31, 2);
-- @apply
SET binlog_row_image = MINIMAL;
DELETE FROM parent WHERE id = 1;
-- @apply
-- @logged cdc-producer copied again table=unreadable_parent.parent
-- @logged cdc-producer copied again table=unreadable_parent.child
-- @logged cdc-producer copied again table=unreadable_parent.grandchild
-- @silent cdc-producer unreadable_parent.stays
-- @equal
