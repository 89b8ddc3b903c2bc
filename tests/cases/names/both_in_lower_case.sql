-- Both servers have all names in lower case: rows are logged so, statements as they were typed. Filters and renames count
-- in any case. A record has the names as the server stores them, whatever the statement says.
-- @newer leader rows of cascades in the binlog
-- @server leader --lower-case-table-names=1
-- @server follower --lower-case-table-names=1
-- @profile producer filters.include_tables = ["Names_Both.*", "names_other.ÄPFEL"]
-- @profile consumer filters.exclude_tables = ["NAMES_BOTH.Left_Out"]
-- @profile consumer renames.Names_Both = "Names_COPY"
CREATE DATABASE Names_Both;
-- -> {"uri": "flv://mysql-srv1/names_both", "affects": [{"action": "CreateDatabase", "uri": "flv://mysql-srv1/names_both"}]}
USE NAMES_BOTH;
CREATE TABLE Orders (Id INT PRIMARY KEY, Name VARCHAR(20));
-- -> {"uri": "flv://mysql-srv1/names_both", "operation": {"Query": "CREATE TABLE Orders (Id INT PRIMARY KEY, Name VARCHAR(20))"}, "affects": [{"action": "CreateTable", "uri": "flv://mysql-srv1/names_both/orders"}]}
INSERT INTO oRDERS VALUES (1, 'a'), (2, 'b');
-- -> {"uri": "flv://mysql-srv1/names_both/orders", "columns": ["Id", "Name"]}
CREATE TABLE Left_Out (i INT);
-- -> {}
INSERT INTO LEFT_OUT VALUES (7);
-- -> {}
CREATE DATABASE Names_Other;
-- -> {"uri": "flv://mysql-srv1/names_other"}
CREATE TABLE Names_Other.`Äpfel` (i INT PRIMARY KEY);
-- -> {"affects": [{"action": "CreateTable", "uri": "flv://mysql-srv1/names_other/%C3%A4pfel"}]}
INSERT INTO Names_Other.`ÄPFEL` VALUES (1);
-- -> {"uri": "flv://mysql-srv1/names_other/%C3%A4pfel"}
-- @apply
-- @follower
SELECT * FROM names_copy.orders;
-- = [1, "a"]
-- = [2, "b"]
SELECT * FROM names_other.äpfel;
-- = [1]
SHOW TABLES FROM names_copy;
-- = ["orders"]
-- @leader
ALTER TABLE ORDERS ADD Price INT DEFAULT 5, ADD UNIQUE Names (Name);
-- -> {"affects": [{"action": "AlterTable", "uri": "flv://mysql-srv1/names_both/orders"}]}
CREATE TABLE Parts (Id INT PRIMARY KEY, Of_Order INT, FOREIGN KEY (Of_Order) REFERENCES Names_Both.Orders (ID) ON DELETE CASCADE);
-- -> {}
INSERT INTO Parts VALUES (1, 1), (2, 2);
-- -> {}
DELETE FROM Orders WHERE ID = 1;
-- -> {}
-- -> {}
CREATE VIEW Seen AS SELECT O.Id FROM names_BOTH.Orders O;
-- -> {"affects": [{"action": "CreateView", "uri": "flv://mysql-srv1/names_both/seen"}]}
RENAME TABLE Orders TO Orders_OLD, Parts TO Parts_2;
-- -> {"affects": [{"action": "RenameTable", "uri": "flv://mysql-srv1/names_both/orders", "to": "flv://mysql-srv1/names_both/orders_old"}, {"action": "RenameTable", "uri": "flv://mysql-srv1/names_both/parts", "to": "flv://mysql-srv1/names_both/parts_2"}]}
UPDATE Orders_Old SET Name = 'c';
-- -> {"uri": "flv://mysql-srv1/names_both/orders_old"}
DROP VIEW SEEN;
-- -> {}
CREATE TABLE Picked LIKE Orders_Old;
-- -> {"affects": [{"action": "CreateTable", "uri": "flv://mysql-srv1/names_both/picked", "like": "flv://mysql-srv1/names_both/orders_old"}]}
CREATE PROCEDURE Take(n INT) DELETE FROM Orders_OLD WHERE Id = n;
-- -> {"affects": [{"action": "CreateProcedure", "uri": "flv://mysql-srv1/names_both/Take"}]}
TRUNCATE parts_2;
-- -> {}
-- @differs names_both
-- @apply
-- @follower
SELECT * FROM names_copy.orders_old;
-- = [2, "c", 5]
SHOW TABLES FROM names_copy;
-- = ["orders_old"]
-- = ["parts_2"]
-- = ["picked"]
