"""Random settings of a session, which decide how a statement is read, stored and logged. Pure."""

from random import Random

__all__ = ["MODES", "random_setting"]

# All flags of MySQL 9.
MODES = (
    "ALLOW_INVALID_DATES",
    "ANSI_QUOTES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_SPACE",
    "INTERPRET_UTF8_AS_UTF8MB4",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "PAD_CHAR_TO_FULL_LENGTH",
    "PIPES_AS_CONCAT",
    "REAL_AS_FLOAT",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TIME_TRUNCATE_FRACTIONAL",
    "ANSI",
    "TRADITIONAL",
)
CLIENTS = (
    "utf8mb4",
    "utf8mb4",
    "utf8mb4",
    "utf8mb3",
    "latin1",
    "cp1251",
    "gbk",
    "sjis",
    "big5",
    "koi8r",
    "ascii",
    "binary",
)
_COLLATIONS = (
    "utf8mb4_0900_ai_ci",
    "utf8mb4_general_ci",
    "utf8mb4_bin",
    "latin1_german1_ci",
    "cp1251_bin",
    "gbk_bin",
    "ucs2_bin",
)
_CHOICES = {
    "time_zone": ("'+00:00'", "'SYSTEM'", "'-03:30'", "'+13:45'", "'+05:00'"),
    "foreign_key_checks": ("0", "1", "1", "1"),
    "unique_checks": ("0", "1", "1"),
    "innodb_strict_mode": ("0", "1"),
    "sql_generate_invisible_primary_key": ("0", "1"),
    "sql_require_primary_key": ("0", "0", "0", "1"),
    "transaction_isolation": ("'READ-UNCOMMITTED'", "'READ-COMMITTED'", "'REPEATABLE-READ'", "'SERIALIZABLE'"),
    "binlog_transaction_compression": ("0", "1"),
    "binlog_rows_query_log_events": ("0", "1"),
    "default_collation_for_utf8mb4": ("'utf8mb4_0900_ai_ci'", "'utf8mb4_general_ci'"),
    "character_set_database": ("utf8mb4", "latin1", "cp1251", "gbk", "ucs2", "binary"),
    "collation_server": _COLLATIONS,
    "collation_connection": _COLLATIONS,
    "auto_increment_increment": ("1", "1", "1", "7"),
    "auto_increment_offset": ("1", "1", "3"),
    "timestamp": ("DEFAULT", "DEFAULT", "1000000000.123456", "1"),
    "insert_id": ("50", "1000"),
    "sql_auto_is_null": ("0", "1"),
    "group_concat_max_len": ("4", "1024"),
    "old_alter_table": ("0", "1"),
    "sql_quote_show_create": ("0", "1"),
    "sql_safe_updates": ("0", "0", "0", "1"),
    "updatable_views_with_limit": ("NO", "YES"),
    "restrict_fk_on_non_standard_key": ("0", "1"),
    "internal_tmp_mem_storage_engine": ("MEMORY", "TempTable"),
    "block_encryption_mode": ("'aes-128-ecb'", "'aes-128-ecb'", "'aes-256-ecb'"),
    "lc_time_names": ("'en_US'", "'de_DE'"),
    "default_week_format": ("0", "3"),
    "completion_type": ("NO_CHAIN", "NO_CHAIN", "CHAIN"),
    "xa_detach_on_prepare": ("0", "1"),
    "binlog_direct_non_transactional_updates": ("0", "1"),
    "show_create_table_skip_secondary_engine": ("0", "1"),
    "last_insert_id": ("7", "1000"),
    "rand_seed1": ("5",),
    "sql_select_limit": ("3", "DEFAULT", "DEFAULT"),
    "optimizer_switch": ("'index_merge=off'", "DEFAULT"),
    "big_tables": ("0", "1"),
    "low_priority_updates": ("0", "1"),
    "innodb_table_locks": ("0", "1"),
    "default_tmp_storage_engine": ("InnoDB", "MyISAM"),
    "max_sort_length": ("4", "1024"),
    "sql_warnings": ("0", "1"),
    "windowing_use_high_precision": ("0", "1"),
    "end_markers_in_json": ("0", "1"),
    "character_set_results": ("latin1", "utf8mb4", "NULL"),
    "max_error_count": ("0", "64"),
}
_OTHER = (
    "FLUSH BINARY LOGS",
    "FLUSH TABLES",
    "SET NAMES utf8mb4",
    "SET CHARACTER SET latin1",
    "SET sql_mode = DEFAULT",
)


def random_setting(chance: Random) -> str:
    """One statement that changes the session; two of five change its sql_mode."""
    roll = chance.random()
    if roll < 0.4:
        return random_modes(chance)
    if roll < 0.5:
        return f"SET NAMES {chance.choice(CLIENTS)}"
    if roll < 0.55:
        return chance.choice(_OTHER)
    name = chance.choice(sorted(_CHOICES))
    return f"SET SESSION {name} = {chance.choice(_CHOICES[name])}"


def random_modes(chance: Random) -> str:
    """A statement that gives the session's sql_mode any flags."""
    modes = chance.sample(MODES, chance.choice([0, 1, 1, 2, 3, 6]))
    return f"SET SESSION sql_mode = '{','.join(modes)}'"
