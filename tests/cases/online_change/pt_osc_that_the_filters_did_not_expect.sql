-- pt-online-schema-change, where the consumer's filters don't let its shadow tables pass: what the message says leads to
-- the same rows, and the next change needs no hand.
-- @profile producer filters.include_dbs = ["pt_osc_crossed"]
-- @profile consumer filters.include_tables = ["pt_osc_crossed.t"]
CREATE DATABASE pt_osc_crossed;
USE pt_osc_crossed;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, name VARCHAR(20));
INSERT INTO t (n, name) WITH RECURSIVE s AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 299) SELECT n, CONCAT('row ', n) FROM s;
CREATE TABLE `pt_osc_crossed`.`_t_new` (
  `id` int NOT NULL AUTO_INCREMENT,
  `n` int NOT NULL,
  `name` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
ALTER TABLE `pt_osc_crossed`.`_t_new` ADD COLUMN added INT NOT NULL DEFAULT 7, MODIFY name VARCHAR(40);
CREATE TRIGGER `pt_osc_d_t_del` AFTER DELETE ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `pt_osc_crossed`.`_t_new` WHERE `pt_osc_crossed`.`_t_new`.`id` <=> OLD.`id`; END;
CREATE TRIGGER `pt_osc_d_t_upd` AFTER UPDATE ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `pt_osc_crossed`.`_t_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `pt_osc_crossed`.`_t_new`.`id` <=> OLD.`id`; REPLACE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END;
CREATE TRIGGER `pt_osc_d_t_ins` AFTER INSERT ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; REPLACE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END;
INSERT LOW_PRIORITY IGNORE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) SELECT `id`, `n`, `name` FROM `pt_osc_crossed`.`t`
    FORCE INDEX(`PRIMARY`) WHERE ((`id` >= 1)) AND ((`id` <= 150)) LOCK IN SHARE MODE
    /*pt-online-schema-change 4711 copy nibble*/;
INSERT LOW_PRIORITY IGNORE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) SELECT `id`, `n`, `name` FROM `pt_osc_crossed`.`t`
    FORCE INDEX(`PRIMARY`) WHERE ((`id` >= 151)) AND ((`id` <= 300)) LOCK IN SHARE MODE
    /*pt-online-schema-change 4711 copy nibble*/;
ANALYZE TABLE `pt_osc_crossed`.`_t_new` /* pt-online-schema-change */;
RENAME TABLE `pt_osc_crossed`.`t` TO `pt_osc_crossed`.`_t_old`, `pt_osc_crossed`.`_t_new` TO `pt_osc_crossed`.`t`;
DROP TABLE IF EXISTS `_t_old`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_del`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_upd`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_ins`;
UPDATE t SET n = 5, added = 8 WHERE id = 7;
-- @apply
-- @stops cdc-consumer 3 ALTER on the follower by hand, continue with --skip … and then set filters.shadow_tables = ["_{table}_new", "_{table}_old"] in the consumer
-- @follower
ALTER TABLE pt_osc_crossed.t ADD COLUMN added INT NOT NULL DEFAULT 7, MODIFY name VARCHAR(40);
-- @run cdc-consumer --skip {skip}
-- @equal
-- @profile consumer filters.shadow_tables = ["_{table}_new", "_{table}_old"]
-- @leader
CREATE TABLE `pt_osc_crossed`.`_t_new` (
  `id` int NOT NULL AUTO_INCREMENT,
  `n` int NOT NULL,
  `name` varchar(40), `added` int NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
ALTER TABLE `pt_osc_crossed`.`_t_new` MODIFY name VARCHAR(40);
CREATE TRIGGER `pt_osc_d_t_del` AFTER DELETE ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `pt_osc_crossed`.`_t_new` WHERE `pt_osc_crossed`.`_t_new`.`id` <=> OLD.`id`; END;
CREATE TRIGGER `pt_osc_d_t_upd` AFTER UPDATE ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; DELETE IGNORE FROM `pt_osc_crossed`.`_t_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `pt_osc_crossed`.`_t_new`.`id` <=> OLD.`id`; REPLACE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END;
CREATE TRIGGER `pt_osc_d_t_ins` AFTER INSERT ON `pt_osc_crossed`.`t` FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; REPLACE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END;
INSERT LOW_PRIORITY IGNORE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) SELECT `id`, `n`, `name` FROM `pt_osc_crossed`.`t`
    FORCE INDEX(`PRIMARY`) WHERE ((`id` >= 1)) AND ((`id` <= 150)) LOCK IN SHARE MODE
    /*pt-online-schema-change 4711 copy nibble*/;
INSERT LOW_PRIORITY IGNORE INTO `pt_osc_crossed`.`_t_new` (`id`, `n`, `name`) SELECT `id`, `n`, `name` FROM `pt_osc_crossed`.`t`
    FORCE INDEX(`PRIMARY`) WHERE ((`id` >= 151)) AND ((`id` <= 300)) LOCK IN SHARE MODE
    /*pt-online-schema-change 4711 copy nibble*/;
ANALYZE TABLE `pt_osc_crossed`.`_t_new` /* pt-online-schema-change */;
RENAME TABLE `pt_osc_crossed`.`t` TO `pt_osc_crossed`.`_t_old`, `pt_osc_crossed`.`_t_new` TO `pt_osc_crossed`.`t`;
DROP TABLE IF EXISTS `_t_old`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_del`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_upd`;
DROP TRIGGER IF EXISTS `pt_osc_crossed`.`pt_osc_d_t_ins`;
