-- What logs show of statements on accounts: `-- -> ` the verb and the accounts, and never a secret.

CREATE USER 'u1'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 'secret';
-- -> CREATE USER u1@%
CREATE USER IF NOT EXISTS a@h.x IDENTIFIED BY 'secret', 'b' IDENTIFIED BY 'secret';
-- -> CREATE USER a@h.x, b
ALTER USER USER() IDENTIFIED BY 'secret' REPLACE 'secret';
-- -> ALTER USER USER
CREATE USER c IDENTIFIED WITH x AS 0x5EC2E7 REQUIRE SUBJECT 'secret' AND ISSUER 'secret';
-- -> CREATE USER c
DROP ROLE r1, 'r2'@'%';
-- -> DROP ROLE r1, r2@%
RENAME USER a TO b, c@d TO e;
-- -> RENAME USER a, b, c@d, e
GRANT SELECT (`id`), INSERT ON `s`.`t1` TO 'u1'@'%','u4'@'h' WITH GRANT OPTION;
-- -> GRANT u1@%, u4@h
GRANT r1 TO u1 WITH ADMIN OPTION;
-- -> GRANT u1
REVOKE IF EXISTS ALL PRIVILEGES, GRANT OPTION FROM u1 IGNORE UNKNOWN USER;
-- -> REVOKE u1
SET PASSWORD FOR u1@h = 'secret';
-- -> SET PASSWORD u1@h
SET PASSWORD = 'secret';
-- -> SET PASSWORD
SET DEFAULT ROLE r1, r2 TO u4@localhost;
-- -> SET DEFAULT ROLE u4@localhost
CREATE USER;
-- -> CREATE USER
