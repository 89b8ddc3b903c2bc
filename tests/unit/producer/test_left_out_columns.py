"""Which statements are replicated without the columns that are left out, and which are refused."""

import pytest

from cdc.config.filters import Filters
from cdc.producer.left_out_columns import shown, without_removed
from cdc.sql.statement import classify

FILTERS = Filters(mask_columns={"shop.users.mail": "gone", "shop.*.card": "gone", "shop.users.name": "null"})


def without(text: str, database: str = "shop") -> str | None:
    _, effects = classify(text, database=database, ansi_quotes=False)
    return without_removed(text, effects, {"database": database, "sql_mode": ""}, FILTERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE users (id INT, mail INT, name INT)", "CREATE TABLE users (id INT, name INT)"),
        ("CREATE TABLE shop.orders (id INT, mail INT, CARD INT)", "CREATE TABLE shop.orders (id INT, mail INT)"),
        ("CREATE TABLE other.users (id INT, mail INT)", "CREATE TABLE other.users (id INT, mail INT)"),
        ("ALTER TABLE users DROP mail", None),
        ("CREATE INDEX k ON users (mail)", None),
        ("ANALYZE TABLE users UPDATE HISTOGRAM ON mail", None),
        ("ANALYZE TABLE users", "ANALYZE TABLE users"),
        ("CREATE VIEW v AS SELECT id, name FROM users", "CREATE VIEW v AS SELECT id, name FROM users"),
        ("CREATE VIEW v AS SELECT mail FROM orders", "CREATE VIEW v AS SELECT mail FROM orders"),
        ("DROP TABLE card", "DROP TABLE card"),
        ("RENAME TABLE card TO cards", "RENAME TABLE card TO cards"),
    ],
)
def test_statements_without_the_columns(text: str, expected: str | None) -> None:
    assert without(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT mail FROM users",
        "CREATE VIEW other.v AS SELECT u.mail FROM shop.users u",
        "CREATE TRIGGER r BEFORE INSERT ON users FOR EACH ROW SET NEW.mail = ''",
        "CREATE PROCEDURE p() DELETE FROM users WHERE mail = ''",
        "DROP INDEX mail ON users",
        "ALTER TABLE users DROP INDEX mail",
        "CREATE VIEW v AS SELECT Mail FROM SHOP.Users",
        "CREATE TABLE other.t (a INT, FOREIGN KEY (a) REFERENCES shop.users (mail))",
    ],
)
def test_what_names_such_a_column_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        without(text)


def test_a_record_shows_no_text_that_may_name_such_a_column() -> None:
    assert shown("UPDATE users SET Mail = …", "hidden", FILTERS) == "hidden"
    assert shown("UPDATE users SET name = …", "hidden", FILTERS) == "UPDATE users SET name = …"
