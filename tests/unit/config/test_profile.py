"""Profiles: what is read, and what each mistake says."""

from pathlib import Path

import pytest

from cdc.config.profile import BOTH_SERVERS, Profile, load
from cdc.errors import UserError

TUTORIAL = """
mysql_resource_name = "mysql-srv1"
[database]
port = 3080
user = "fluvio"
password = "fluvio4cdc!"
[filters]
include_dbs = ["flvDb"]
[kafka]
topic = "rust-mysql-cdc"
[kafka.librdkafka]
"compression.type" = "zstd"
"""


def test_the_tutorials_profile_is_read() -> None:
    profile = Profile.parse(TUTORIAL, name="p.toml")
    assert profile.database.port == 3080
    assert profile.database.secret() == "fluvio4cdc!"
    assert profile.filters.wants_table("flvDb", "pet")
    assert not profile.filters.wants_table("other", "pet")
    assert profile.kafka.librdkafka == {"compression.type": "zstd"}


def test_every_key_has_a_default() -> None:
    assert Profile.parse("", name="p.toml") == Profile()


def test_a_password_of_two_quotes_and_a_letter_is_read() -> None:
    """The package toml takes it for an empty one."""
    assert Profile.parse('[database]\npassword = "\\"\\"x"', name="p.toml").database.secret() == '""x'


def test_the_password_is_not_shown() -> None:
    assert "fluvio4cdc!" not in repr(Profile.parse(TUTORIAL, name="p.toml"))


@pytest.mark.parametrize(
    "text",
    [
        "[database]\npassword = 12345678",
        "[database]\npassword = 12345678x",
        "[database]\npassword = 12345678'x",
        '[database]\npassword = "x"12345678',
        '[database]\npassword = "12345678\u0007"',
        "[database]\npassword.12345678 = 1\npassword.12345678 = 2",
        "database = {12345678 = 1, 12345678 = 2}",
        "[database]\npassword = " + "12345678" * 1000,
        "[database]\npassword = [12345678]",
        "[kafka.librdkafka]\n'sasl.password' = 12345678x",
        "[kafka]\nlibrdkafka = 'sasl.password=12345678'",
    ],
)
def test_a_secret_in_a_broken_line_is_not_shown(text: str) -> None:
    with pytest.raises(UserError) as caught:
        Profile.parse(text, name="p.toml")
    assert "12345678" not in str(caught.value)


def test_secrets_of_kafka_are_not_shown() -> None:
    assert "12345678" not in repr(Profile.parse("[kafka.librdkafka]\n'sasl.password' = '12345678'", name="p.toml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[database", "broken TOML"),
        ("[database]\nprot = 1", "nearest known key is 'port'"),
        ("[datbase]\nport = 1", "nearest known key is 'database'"),
        ("[database]\nport = '1'", "not a whole number"),
        ("[database]\nport = true", "not a whole number"),
        ("[database]\nport = 0", "from 1 to 65535"),
        ("database = 1", "must be a table"),
        ("[filters]\ninclude_dbs = 'a'", "must be a list of strings"),
        ("[filters]\ninclude_dbs = ['a']\nexclude_dbs = ['b']", "keep one of the two"),
        ("[filters]\nexclude_tables = ['d.a', 'secrets']", "'secrets' names no table"),
        ("[filters]\ninclude_tables = ['my.db.orders']", '"`my.db`.orders"'),
        ("[filters]\nexclude_tables = ['`my.db`']", "does not name a database and a table"),
        ("[kafka]\ntables = ['`my.db`.a.b']", "does not name a database and a table"),
        ("[kafka]\nlayout = 'many'", "one of single, per_table"),
        ("[kafka]\npartitions = 3", "one partition"),
        ("[kafka]\nprefix = 'a b'", "part of a topic's name"),
        ("[kafka]\nevents = true\ntopic = 'mysql_binlog_events'", "another name"),
        ("[kafka.librdkafka]\n'message.max.bytes' = '0x5f5e100'", "message.max.bytes"),
        ("[kafka.librdkafka]\n'message.max.bytes' = 1e8", "no whole number in decimal digits"),
        ("[kafka]\ntransactions = false\n[kafka.librdkafka]\n'transactional.id' = 'a'", "cdc-producer's own"),
        ("resume_file = 'x'", "the position is in Kafka"),
        ("[fluvio]\ntopic = 'x'", "rename the table [fluvio] to [kafka]"),
        ("mysql_resource_name = ''", "resource name is empty"),
    ],
)
def test_a_mistake_names_the_file_the_key_and_the_way_out(text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        Profile.parse(text, name="p.toml")
    assert words in str(caught.value)
    assert "p.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_such_profile(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(tmp_path / "none.toml")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b'\xef\xbb\xbfmysql_resource_name = "srv"\r\n')
    assert load(path).mysql_resource_name == "srv"


def test_passwords_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_PASSWORD", "from env")
    (tmp_path / "secret").write_text("from file\n")
    by_env = Profile.parse('[database]\npassword_env = "LEADER_PASSWORD"', name="p")
    by_file = Profile.parse(f'[database]\npassword_file = "{tmp_path / "secret"}"', name="p")
    assert by_env.database.secret() == "from env"
    assert by_file.database.secret() == "from file"
    with pytest.raises(UserError, match="NOT_SET"):
        Profile.parse('[database]\npassword_env = "NOT_SET"', name="p").database.secret()


RESOURCE, DATABASE = "mysql_resource_name", "database.ip_or_host, database.port, database.user"
BROKERS, TOPIC = "kafka.bootstrap_servers", "kafka.topic"


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("", f"{RESOURCE}, {DATABASE}, {BROKERS}, {TOPIC}"),
        ("[database]\n[kafka]\ntopic = 't'", f"{RESOURCE}, {DATABASE}, {BROKERS}"),
        (f"{RESOURCE} = 'a'\n[database]\nport = 1", f"database.ip_or_host, database.user, {BROKERS}, {TOPIC}"),
        ("[database]\nport = 1\n[kafka]\ntopic = 't'", None),
    ],
)
def test_a_profile_that_does_not_say_where_the_servers_are(tmp_path: Path, text: str, lacks: str | None) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    if lacks is None:
        assert load(path, servers=BOTH_SERVERS).kafka.topic == "t"
        return
    with pytest.raises(UserError) as refused:
        load(path, servers=BOTH_SERVERS)
    assert refused.value.what == f"the profile lacks {lacks}"
