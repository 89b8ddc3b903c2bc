"""The statements for one of the consumer's own tables."""

from cdc.consumer.state.own_table import OwnTable

TABLE = OwnTable("places", "number INT NOT NULL,\n  name TEXT NOT NULL,\n  at DATETIME(6) NOT NULL", key=("number",))
ONE = OwnTable("marks", "at DATETIME(6) NOT NULL")


def test_the_resource_is_the_first_column_and_begins_the_key() -> None:
    lines = [line.strip(" ,") for line in TABLE.create("own").splitlines()]
    assert lines[0] == "CREATE TABLE IF NOT EXISTS `own`.`places` ("
    assert lines[1].startswith("resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
    assert lines[2:4] == ["number INT NOT NULL", "name TEXT NOT NULL"]
    assert lines[-2:] == ["PRIMARY KEY (resource, number)", ") ENGINE=InnoDB"]
    assert "PRIMARY KEY (resource)\n" in ONE.create("own")


def test_values_are_quoted_and_numbers_are_not() -> None:
    inserted = TABLE.insert("own", "it's", number=-1, name="a\\b", now="at")
    assert inserted == (
        "INSERT INTO `own`.`places` (resource, number, name, at) VALUES ('it''s', -1, 'a\\\\b', NOW(6))"
    )
    assert ONE.insert("own", "r", now="at") == "INSERT INTO `own`.`marks` (resource, at) VALUES ('r', NOW(6))"


def test_only_rows_of_the_leader_are_found_and_deleted() -> None:
    assert ONE.select("own", "r", "at") == "SELECT at FROM `own`.`marks` WHERE resource='r'"
    assert TABLE.select("own", "r", "name", where="number=2") == (
        "SELECT name FROM `own`.`places` WHERE resource='r' AND (number=2)"
    )
    assert ONE.delete("own", "r") == "DELETE FROM `own`.`marks` WHERE resource='r'"
    assert TABLE.delete("own", "r", where="number<=2") == (
        "DELETE FROM `own`.`places` WHERE resource='r' AND (number<=2)"
    )


def test_it_is_searched_in_its_own_database() -> None:
    assert ONE.exists("own") == (
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA='own' AND TABLE_NAME='marks'"
    )
