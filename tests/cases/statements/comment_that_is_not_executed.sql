-- The server logs a comment of a later version as a plain one: what executable comments in the log say was executed.
CREATE DATABASE plain_comments;
-- -> {"affects":[{"action":"CreateDatabase","uri":"flv://mysql-srv1/plain_comments"}]}
CREATE TABLE plain_comments.a /*!99999 RENAME b */ (i INT);
-- -> {"operation":{"Query":"CREATE TABLE plain_comments.a /* 99999 RENAME b */ (i INT)"},"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/plain_comments/a"}]}
CREATE TABLE plain_comments./*!99999 a */ b (i INT);
-- -> {"affects":[{"action":"CreateTable","uri":"flv://mysql-srv1/plain_comments/b"}]}
