-- gh-ost: a changelog table, and a ghost that is filled and swapped; the changelog is never renamed, so that followers
-- need not have it.
-- @profile producer filters.include_tables = ["gh_ost.t"]
-- @profile producer filters.shadow_tables = ["_{table}_gho", "_{table}_del"]
CREATE DATABASE gh_ost;
USE gh_ost;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, name VARCHAR(20));
INSERT INTO t (n, name) WITH RECURSIVE s AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 299) SELECT n, CONCAT('row ', n) FROM s;
-- @apply
-- @equal
create /* gh-ost */ table `gh_ost`.`_t_ghc` (
  id bigint unsigned auto_increment,
  last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  hint varchar(64) charset ascii not null,
  value varchar(4096) charset ascii not null,
  primary key(id),
  unique key hint_uidx(hint)
) auto_increment=256;
create /* gh-ost */ table `gh_ost`.`_t_gho` like `gh_ost`.`t`;
alter /* gh-ost */ table `gh_ost`.`_t_gho` ADD COLUMN added INT NOT NULL DEFAULT 7, DROP COLUMN name, ADD INDEX (n);
insert /* gh-ost */ into `gh_ost`.`_t_ghc` (id, hint, value) values (NULLIF(2, 0), 'state', 'GhostTableMigrated')
    on duplicate key update last_update=NOW(), value=VALUES(value);
insert /* gh-ost `gh_ost`.`t` */ ignore into `gh_ost`.`_t_gho` (`id`, `n`)
    (select `id`, `n` from `gh_ost`.`t` force index (`PRIMARY`) where id between 1 and 150 lock in share mode);
-- @apply
insert /* gh-ost `gh_ost`.`t` */ ignore into `gh_ost`.`_t_gho` (`id`, `n`)
    (select `id`, `n` from `gh_ost`.`t` force index (`PRIMARY`) where id between 151 and 300 lock in share mode);
create /* gh-ost */ table `gh_ost`.`_t_del` (id int auto_increment primary key) engine=InnoDB
    comment='ghost-cut-over-sentry';
insert /* gh-ost */ into `gh_ost`.`_t_ghc` (id, hint, value) values (NULLIF(2, 0), 'state', 'AllEventsUpToLockProcessed')
    on duplicate key update last_update=NOW(), value=VALUES(value);
drop /* gh-ost */ table if exists `gh_ost`.`_t_del`;
rename /* gh-ost */ table `gh_ost`.`t` to `gh_ost`.`_t_del`, `gh_ost`.`_t_gho` to `gh_ost`.`t`;
drop /* gh-ost */ table if exists `gh_ost`.`_t_ghc`;
drop /* gh-ost */ table if exists `gh_ost`.`_t_del`;
-- @apply
-- @follower
SHOW TABLES FROM gh_ost;
-- = ["t"]
SELECT COUNT(*), SUM(added), SUM(n) FROM gh_ost.t;
-- = [300, "2100", "44850"]
