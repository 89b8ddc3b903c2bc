-- A statement runs on the follower as in the leader's session: its quotes, character set, time zone, checks and time.
CREATE DATABASE leaders_context CHARACTER SET latin1;
USE leaders_context;
SET sql_mode = 'ANSI_QUOTES', time_zone = '+05:00', foreign_key_checks = 0, timestamp = 1000000000;
SET NAMES latin1 COLLATE latin1_german1_ci;
CREATE TABLE "t" (i INT DEFAULT 0, "ü" TIMESTAMP DEFAULT '2001-09-09 06:46:40', p INT, FOREIGN KEY (p) REFERENCES nowhere (id));
INSERT INTO t (i) VALUES (1);
ALTER TABLE "t" ADD COLUMN at DATETIME DEFAULT CURRENT_TIMESTAMP;
-- @apply
-- @equal
-- @follower
SELECT i, UNIX_TIMESTAMP(ü), CAST(at AS CHAR) FROM leaders_context.t;
-- = [1, 1000000000, "2001-09-09 06:46:40"]
