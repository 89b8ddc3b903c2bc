"""Where a definer is taken out of a statement, and where the object is given the rights of its caller."""

import pytest

from cdc.sql.statement import as_invoker

AS_INVOKER = {
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS select 1": (
        "CREATE ALGORITHM=UNDEFINED SQL SECURITY INVOKER VIEW `v` AS select 1"
    ),
    "CREATE OR REPLACE DEFINER=root@localhost VIEW v AS SELECT 1": (
        "CREATE OR REPLACE SQL SECURITY INVOKER VIEW v AS SELECT 1"
    ),
    "CREATE VIEW v AS SELECT 'DEFINER'": "CREATE SQL SECURITY INVOKER VIEW v AS SELECT 'DEFINER'",
    "ALTER DEFINER=`a`@`b` SQL SECURITY INVOKER VIEW v AS SELECT 1": "ALTER SQL SECURITY INVOKER VIEW v AS SELECT 1",
    "CREATE DEFINER=`a b`@`%` PROCEDURE `d`.`p`(n DECIMAL(5, 2))\n    COMMENT 'SQL SECURITY DEFINER'\nDELETE FROM t": (
        "CREATE PROCEDURE `d`.`p`(n DECIMAL(5, 2))\n    COMMENT 'SQL SECURITY DEFINER'\n"
        "SQL SECURITY INVOKER DELETE FROM t"
    ),
    "CREATE DEFINER=CURRENT_USER() PROCEDURE p() SELECT 1": "CREATE PROCEDURE p() SQL SECURITY INVOKER SELECT 1",
    "CREATE FUNCTION f(n INT) RETURNS varchar(20) CHARSET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC RETURN n": (
        "CREATE FUNCTION f(n INT) RETURNS varchar(20) CHARSET utf8mb4 COLLATE utf8mb4_bin DETERMINISTIC "
        "SQL SECURITY INVOKER RETURN n"
    ),
    "CREATE FUNCTION f() RETURNS enum('a)','b') NO SQL RETURN 'b'": (
        "CREATE FUNCTION f() RETURNS enum('a)','b') NO SQL SQL SECURITY INVOKER RETURN 'b'"
    ),
    "CREATE FUNCTION f() RETURNS int unsigned SQL SECURITY DEFINER BEGIN RETURN 1; END": (
        "CREATE FUNCTION f() RETURNS int unsigned SQL SECURITY INVOKER BEGIN RETURN 1; END"
    ),
    "ALTER PROCEDURE p SQL SECURITY DEFINER COMMENT 'x'": "ALTER PROCEDURE p SQL SECURITY INVOKER COMMENT 'x'",
    "ALTER FUNCTION f COMMENT 'SQL SECURITY DEFINER'": "ALTER FUNCTION f COMMENT 'SQL SECURITY DEFINER'",
    "DROP VIEW v": "DROP VIEW v",
    "CREATE TABLE t (definer INT, view_of INT)": "CREATE TABLE t (definer INT, view_of INT)",
}


@pytest.mark.parametrize("text", AS_INVOKER)
def test_objects_have_the_rights_of_their_callers(text: str) -> None:
    changes = as_invoker(text, ansi_quotes=False)
    assert changes is not None
    changed = text
    for start, end, new in reversed(changes):
        changed = changed[:start] + new + changed[end:]
    assert changed == AS_INVOKER[text]


@pytest.mark.parametrize("text", ["CREATE PROCEDURE p", "CREATE FUNCTION f() RETURN 1", "CREATE FUNCTION f("])
def test_an_uncertain_place_is_none(text: str) -> None:
    assert as_invoker(text, ansi_quotes=False) is None
