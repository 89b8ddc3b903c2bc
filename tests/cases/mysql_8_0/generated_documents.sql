-- A generated column that parses text has other doubles on a follower of MySQL 8.0: that stops the consumer, whatever
-- parses it. A plain column in its place takes the leader's values.
-- @server follower 8.0
-- @differs generated_documents.c generated_documents.plain generated_documents.member generated_documents.added
CREATE DATABASE generated_documents;
USE generated_documents;
CREATE TABLE c (id INT PRIMARY KEY, txt TEXT, j JSON AS (CAST(txt AS JSON)) STORED);
CREATE TABLE plain (id INT PRIMARY KEY, txt TEXT, j JSON AS (txt) STORED);
CREATE TABLE member (id INT PRIMARY KEY, d DOUBLE, txt TEXT, m INT AS (d MEMBER OF (txt)) STORED);
INSERT INTO c (id, txt) VALUES (1, '[0.5]'), (2, '[463.78841705583204]');
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @stops cdc-consumer 3 if it parses JSON, on the server's version: then make it a plain column of its type on the follower
-- @follower
ALTER TABLE generated_documents.c MODIFY j JSON;
-- @leader
INSERT INTO plain (id, txt) VALUES (1, '[0.41339201716594043]');
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
ALTER TABLE generated_documents.plain MODIFY j JSON;
-- @leader
INSERT INTO member (id, d, txt) VALUES (1, 453368734.70145965, '[453368734.70145965]');
-- @apply
-- @stops cdc-consumer 3 a generated column gets another value here than on the leader
-- @follower
ALTER TABLE generated_documents.member MODIFY m INT;
-- @apply
SELECT id, CAST(j AS CHAR) FROM generated_documents.c UNION SELECT id, CAST(j AS CHAR) FROM generated_documents.plain
UNION SELECT id, m FROM generated_documents.member;
-- @both
-- @leader
-- Rows that are there get it without being sent.
USE generated_documents;
CREATE TABLE added (id INT PRIMARY KEY, txt TEXT);
INSERT INTO added VALUES (1, '[463.78841705583204]');
ALTER TABLE added ADD d DOUBLE AS (txt->'$[0]') STORED;
-- @apply
-- @logged JSON documents that the statement made from text may contain other doubles than on the leader … --copy generated_documents.added
