"""Definitions that a MariaDB leader shows, as a MySQL follower needs them."""

import pytest

from cdc.producer.decode.changes import Creation
from cdc.producer.flavor.mariadb_statements import creation_for_mysql, refusal_of_column, sql_mode_for_mysql

SHOWN = r"""CREATE TABLE IF NOT EXISTS `t` (
  `id` int(11) NOT NULL,
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  `a``b` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'CHECK (x)' CHECK (json_valid(`a``b`)),
  `of_another` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  `v` varchar(50) DEFAULT '  CONSTRAINT `CONSTRAINT_1` CHECK ' CHECK (json_valid(`v`)),
  `u` uuid NOT NULL DEFAULT uuid(),
  `uuid` inet4 DEFAULT '1.2.3.4' COMMENT ' DEFAULT uuid()',
  `i``6` inet6 GENERATED ALWAYS AS (`uuid`) STORED,
  `c` varchar(20) /*M!100301 COMPRESSED*/ CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `cj` longtext /*M!100301 COMPRESSED*/ CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`cj`)),
  PRIMARY KEY (`id`),
  CONSTRAINT `CONSTRAINT_1` CHECK (`id` > 0),
  CONSTRAINT `own` CHECK (`id` > 1)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"""
MADE = r"""CREATE TABLE IF NOT EXISTS `t` (
  `id` int(11) NOT NULL,
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `a``b` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'CHECK (x)',
  `of_another` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  `v` varchar(50) DEFAULT '  CONSTRAINT `CONSTRAINT_1` CHECK ' CHECK (json_valid(`v`)),
  `u` char(36) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT (uuid()),
  `uuid` varchar(15) CHARACTER SET ascii COLLATE ascii_general_ci DEFAULT '1.2.3.4' COMMENT ' DEFAULT uuid()',
  `i``6` varchar(39) CHARACTER SET ascii COLLATE ascii_general_ci GENERATED ALWAYS AS (`uuid`) STORED,
  `c` varchar(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL,
  `cj` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  CHECK (`id` > 0),
  CONSTRAINT `own` CHECK (`id` > 1)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"""
CONTEXT = {"sql_mode": "ALLOW_INVALID_DATES", "collation": "utf8mb4_0900_ai_ci", "database": "d"}


def test_json_is_text_and_checks_have_no_made_up_names() -> None:
    made = creation_for_mysql(Creation(SHOWN, (), CONTEXT))
    assert made.text == MADE
    assert made.context == {
        "sql_mode": "ALLOW_INVALID_DATES,TIME_TRUNCATE_FRACTIONAL",
        "collation": "utf8mb4_general_ci",
        "default_collation_for_utf8mb4": "utf8mb4_general_ci",
        "database": "d",
    }


def test_a_text_with_bytes_of_another_character_set_stays_as_it_is() -> None:
    lost = Creation(SHOWN, (), CONTEXT | {"collation": "latin1_swedish_ci"}, exact=b"\xff")
    made = creation_for_mysql(lost)
    assert (made.text, made.exact, made.context["collation"]) == (SHOWN, b"\xff", "latin1_swedish_ci")


@pytest.mark.parametrize(
    ("modes", "made"),
    [
        ("", "TIME_TRUNCATE_FRACTIONAL"),
        ("STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER", "STRICT_TRANS_TABLES,TIME_TRUNCATE_FRACTIONAL"),
        ("ANSI_QUOTES,TIME_ROUND_FRACTIONAL", "ANSI_QUOTES"),
        ("ORACLE", "ORACLE,TIME_TRUNCATE_FRACTIONAL"),
    ],
)
def test_an_sql_mode_means_the_same(modes: str, made: str) -> None:
    assert sql_mode_for_mysql(modes) == made


@pytest.mark.parametrize(
    ("kind", "column_type", "refused"),
    [
        ("uuid", "uuid", None),
        ("vector", "vector(3)", "has the type vector of MariaDB"),
        ("text", "text /*M!100301 COMPRESSED*/", None),
        ("datetime", "datetime /* mariadb-5.3 */", "whose rows are not replicated"),
        ("enum", "enum('/*')", None),
        ("longtext", "longtext", None),
    ],
)
def test_a_column_of_mariadbs_own_is_refused(kind: str, column_type: str, refused: str | None) -> None:
    found = refusal_of_column("c", kind, column_type)
    assert found is None if refused is None else refused in (found or "")
