"""A server with lower_case_table_names = 1 folds names as ``cdc.model.names`` does, character by character."""

import pytest

from cdc.model.names import folded
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration

# A name has characters of the basic plane only.
LETTERS = [chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000]
AT_ONCE = 4_000


def test_every_character_of_a_name(mysql_server: MySqlFactory) -> None:
    """LOWER() has the same tables as names, which a few real ones show."""
    server = mysql_server("--lower-case-table-names=1", server_id=41)
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for first in range(0, len(LETTERS), AT_ONCE):
            text = "".join(LETTERS[first : first + AT_ONCE])
            cursor.execute("SELECT LOWER(CONVERT(%s USING utf8mb3) COLLATE utf8mb3_general_ci)", [text])
            assert cursor.fetchone() == (folded(text),), f"from U+{ord(text[0]):04X} on"
        # Each of some range, and letters that later versions of Unicode fold.
        names = ["Plain", "ÄÖÜ", "ТАБЛИЦА", "İ", "ẞ", "ȠȢ", "ႠԀ", "ⅧⒷＡ", "ΆϢΣς", "ᾼΩK"]
        cursor.execute("CREATE DATABASE Names_Folded")
        for number, name in enumerate(names):
            cursor.execute(f"CREATE TABLE Names_Folded.`{number}{name}` (i INT)")
        cursor.execute("SHOW TABLES FROM NAMES_folded")
        stored = {name for (name,) in cursor.fetchall()}
        cursor.execute("DROP DATABASE Names_Folded")
    assert stored == {f"{number}{folded(name)}" for number, name in enumerate(names)}
