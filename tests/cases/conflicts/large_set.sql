-- A SET of 64 members, of which one is the empty text: rows are found as they are, without a second attempt.
-- @alone
-- @profile consumer log.level = "debug"
CREATE DATABASE large_set;
USE large_set;
CREATE TABLE t (id INT PRIMARY KEY, s SET('', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8', 'm9', 'm10', 'm11', 'm12', 'm13', 'm14', 'm15', 'm16', 'm17', 'm18', 'm19', 'm20', 'm21', 'm22', 'm23', 'm24', 'm25', 'm26', 'm27', 'm28', 'm29', 'm30', 'm31', 'm32', 'm33', 'm34', 'm35', 'm36', 'm37', 'm38', 'm39', 'm40', 'm41', 'm42', 'm43', 'm44', 'm45', 'm46', 'm47', 'm48', 'm49', 'm50', 'm51', 'm52', 'm53', 'm54', 'm55', 'm56', 'm57', 'm58', 'm59', 'm60', 'm61', 'm62', 'm63'), n INT);
INSERT INTO t VALUES (0, 1, 1), (1, 1 << 50, 1), (2, (1 << 52) + 1, 1), (3, 1 << 63, 1), (4, 18446744073709551615, 1);
-- @apply
UPDATE t SET n = 2;
-- @apply
-- @silent retrying row by row
