-- The Fluvio CDC demo's tutorial: the records are the ones its users know.
CREATE DATABASE flvDb;
-- -> {"uri":"flv://mysql-srv1/flvDb","sequence":0,"operation":{"Query":"CREATE DATABASE flvDb"}}
USE flvDb;
CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE);
-- -> {"uri":"flv://mysql-srv1/flvDb","sequence":1,"operation":{"Query":"CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE)"}}
INSERT INTO pet VALUES ('Puffball','Diane','hamster','f','1999-03-30');
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":2,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
INSERT INTO pet VALUES ('Jack','Peter','dog','m','1999-03-30');
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":3,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
UPDATE pet SET birth = '1989-08-31' WHERE name = 'Jack';
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":4,"columns":["name","owner","species","sex","birth"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}],"after_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1989,"month":8,"day":31}}]}]}}}
ALTER TABLE pet ADD COLUMN last_vaccine DATE;
-- -> {"uri":"flv://mysql-srv1/flvDb","sequence":5,"operation":{"Query":"ALTER TABLE pet ADD COLUMN last_vaccine DATE"}}
DELETE from pet where name='Puffball';
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":6,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Delete":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}},"Null"]}]}}}
INSERT INTO pet VALUES ('Spot', 'Jane', 'dog', 'm', '2010-11-2', Null);
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":7,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Add":{"rows":[{"cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"]}]}}}
UPDATE pet SET last_vaccine='2020-6-10' WHERE name='Spot';
-- -> {"uri":"flv://mysql-srv1/flvDb/pet","sequence":8,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"],"after_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},{"Date":{"year":2020,"month":6,"day":10}}]}]}}}
