-- Statements of every kind that a follower executes, and the names they act on.
CREATE DATABASE objects CHARACTER SET latin1;
-- -> {"uri":"flv://mysql-srv1/objects","sequence":0,"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/objects"}]}
USE objects;
CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), KEY (name));
-- -> {"sequence":1,"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/objects/a"}]}
INSERT INTO a (name) VALUES ('é'), ('ü');
-- -> {"sequence":2,"columns":["id","name"],"key":["id"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"é"}]},{"cols":[{"SignedInteger":2},{"String":"ü"}]}]}}}
CREATE TABLE b LIKE a;
-- -> {"sequence":3,"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/objects/b","like":"flv://mysql-srv1/objects/a"}]}
CREATE TABLE c SELECT id, UPPER(name) AS loud FROM a;
-- -> {"sequence":4,"transaction":{"index":0,"last":false},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/objects/c"}]}
-- -> {"sequence":5,"transaction":{"index":1,"last":true},"columns":["id","loud"],"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":1},{"String":"É"}]},{"cols":[{"SignedInteger":2},{"String":"Ü"}]}]}}}
RENAME TABLE b TO b2, c TO b;
-- -> {"sequence":6,"affects":[{"action":"RenameTable","uri":"flv://mysql-srv1/objects/b","to":"flv://mysql-srv1/objects/b2"},{"action":"RenameTable","uri":"flv://mysql-srv1/objects/c","to":"flv://mysql-srv1/objects/b"}]}
ALTER TABLE a ADD COLUMN n INT DEFAULT 3, ADD UNIQUE (n, id);
-- -> {"sequence":7,"affects":[{"action":"AlterTable","uri":"flv://mysql-srv1/objects/a"}]}
UPDATE a SET n = id + 1, name = CONCAT(name, '!');
-- -> {"sequence":8,"columns":["id","name","n"],"operation":{"Update":{"rows":[{"before_cols":[{"SignedInteger":1},{"String":"é"},{"SignedInteger":3}],"after_cols":[{"SignedInteger":1},{"String":"é!"},{"SignedInteger":2}]},{"before_cols":[{"SignedInteger":2},{"String":"ü"},{"SignedInteger":3}],"after_cols":[{"SignedInteger":2},{"String":"ü!"},{"SignedInteger":3}]}]}}}
CREATE INDEX i ON b (loud);
-- -> {"sequence":9,"affects":[{"action":"CreateIndex","uri":"flv://mysql-srv1/objects/b"}]}
CREATE DEFINER = 'gone'@'%' VIEW v AS SELECT id FROM a;
-- -> {"sequence":10,"affects":[{"action":"CreateView","uri":"flv://mysql-srv1/objects/v"}]}
CREATE PROCEDURE p() BEGIN INSERT INTO a (name) VALUES ('from p'); DELETE FROM b; END;
-- -> {"sequence":11,"affects":[{"action":"CreateProcedure","uri":"flv://mysql-srv1/objects/p"}]}
CREATE TRIGGER g BEFORE INSERT ON a FOR EACH ROW SET NEW.n = 9;
-- -> {"sequence":12,"affects":[{"action":"CreateTrigger","uri":"flv://mysql-srv1/objects/g"}]}
CALL p();
-- -> {"sequence":13,"operation":{"Add":{"rows":[{"cols":[{"SignedInteger":3},{"String":"from p"},{"SignedInteger":9}]}]}}}
-- -> {"sequence":14,"uri":"flv://mysql-srv1/objects/b"}
DROP TRIGGER g;
-- -> {"sequence":15,"affects":[{"action":"DropTrigger","uri":"flv://mysql-srv1/objects/g"}]}
INSERT INTO b VALUES (7, 'x');
-- -> {"sequence":16}
TRUNCATE TABLE b;
-- -> {"sequence":17,"affects":[{"action":"TruncateTable","uri":"flv://mysql-srv1/objects/b"}]}
CREATE USER IF NOT EXISTS 'nobody'@'localhost';
CREATE TABLE d ENGINE=InnoDB COMMENT='with options' SELECT id FROM a LIMIT 1;
-- -> {"sequence":18,"transaction":{"index":0,"last":false}}
-- -> {"sequence":19,"transaction":{"index":1,"last":true}}
CREATE TABLE e COMMENT='no rows' SELECT id FROM a WHERE id < 0;
-- -> {"sequence":20,"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/objects/e"}]}
CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC RETURN n + 1;
-- -> {"sequence":21,"affects":[{"action":"CreateFunction","uri":"flv://mysql-srv1/objects/f"}]}
DROP TABLE b2;
-- -> {"sequence":22,"affects":[{"action":"DropTable","uri":"flv://mysql-srv1/objects/b2"}]}
