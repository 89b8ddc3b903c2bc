"""The settings of the page: which profile counts, and that nobody in the network reads it without a password."""

from dataclasses import replace

import pytest

from cdc.config.profile import Profile, ServerAddress, Web
from cdc.errors import UserError
from cdc.web.program import access_of, settings_of
from cdc.web.watched import streams_of


def test_a_page_for_everybody_needs_a_password() -> None:
    everywhere = ServerAddress("0.0.0.0", 9000)
    with pytest.raises(UserError) as refused:
        access_of(Web(), listen=everywhere)
    assert refused.value.code == "CDC-WEB-OPEN"
    with pytest.raises(UserError, match="everybody"):
        access_of(Web(listen="[::]:9000"), listen=None)
    assert access_of(Web(password="x"), listen=everywhere).listen == everywhere
    assert access_of(Web(), listen=None).listen == ServerAddress("127.0.0.1", 9000)


def test_a_user_without_a_password_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        access_of(Web(user="ada"), listen=None)
    assert refused.value.code == "CDC-WEB-PASSWORD"


def test_the_password_can_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    web = Web(password_env="PAGE")
    with pytest.raises(UserError, match=r"web\.password_env"):
        access_of(web, listen=None)
    monkeypatch.setenv("PAGE", "abc")
    assert access_of(web, listen=None).knows("", "abc")


def test_the_first_profile_with_a_setting_of_the_page_counts() -> None:
    given = [("a", Profile(web=Web(metrics="10.0.0.1:9464"))), ("b", Profile(web=Web(user="x"))), ("c", Profile())]
    assert settings_of(given) == Web(user="x")
    assert settings_of(given[:1]) == Web()


def test_profiles_of_one_stream_belong_together() -> None:
    one, other = Profile(), Profile(mysql_resource_name="other")
    moved = replace(one, kafka=replace(one.kafka, bootstrap_servers="10.0.0.1:9092"))
    given = [("a", one), ("b", other), ("c", one), ("d", moved)]
    assert [[name for name, _ in each] for each in streams_of(given)] == [["a", "c"], ["b"], ["d"]]
