"""The settings of the page: which profile counts, and that nobody in the network reads it without a password."""

import logging
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cdc.config.profile import BOTH_SERVERS, Profile, ServerAddress, Web, load
from cdc.errors import UserError
from cdc.sandbox.server.process import free_port
from cdc.web.program import access_of, check, log_server, serve, settings_of
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


@pytest.mark.parametrize("web", [Web(password_env="PAGE"), Web(password_env="PAGE", user="ada")])
def test_an_empty_password_is_none(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGE", "")
    with pytest.raises(UserError, match="the password of the page is empty"):
        access_of(web, listen=None)


def test_a_password_that_does_not_count_is_told() -> None:
    given = [("a", Profile(web=Web(cache="/tmp/x"))), ("b.toml", Profile(web=Web(password="abc")))]
    with pytest.raises(UserError, match=r"not in the first profile .*b\.toml"):
        serve(given, listen=None, report=None, stop=threading.Event(), log=lambda *_, **__: None)


def test_the_web_servers_warnings_are_lines_of_the_log() -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    log_server(lambda name, **fields: lines.append((name, fields)))
    server = logging.getLogger("uvicorn.error")
    server.warning("Invalid HTTP request received.")
    try:
        raise RuntimeError("defect")
    except RuntimeError:
        server.exception("Exception in ASGI application")
    (name, first), (_, second) = lines
    assert (name, first["says"], first["level"]) == ("web server", "Invalid HTTP request received.", logging.WARNING)
    assert "RuntimeError: defect" in str(second["traceback"])


def test_the_first_profile_with_a_setting_of_the_page_counts() -> None:
    given = [("a", Profile(web=Web(metrics="10.0.0.1:9464"))), ("b", Profile(web=Web(user="x"))), ("c", Profile())]
    assert settings_of(given) == Web(user="x")
    assert settings_of(given[:1]) == Web()


def test_profiles_of_one_stream_belong_together() -> None:
    one, other = Profile(), Profile(mysql_resource_name="other")
    moved = replace(one, kafka=replace(one.kafka, bootstrap_servers="10.0.0.1:9092"))
    given = [("a", one), ("b", other), ("c", one), ("d", moved)]
    assert [[name for name, _ in each] for each in streams_of(given)] == [["a", "c"], ["b"], ["d"]]


def test_servers_that_the_page_could_not_show_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, port = tmp_path / "profile.toml", free_port()
    path.write_text(
        f'[database]\nport = {port}\nuser = "u"\npassword = "secret-of-u"\n'
        f'[kafka]\nbootstrap_servers = "127.0.0.1:{port}"\ntopic = "t"\n'
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = ServerAddress("127.0.0.1", taken.getsockname()[1])
        assert check([(str(path), load(path, servers=BOTH_SERVERS))], listen=listen) == 2
    printed = capsys.readouterr().out
    for code in ("CDC-WEB-PORT", "CDC-KAFKA-NO-ANSWER", "CDC-WEB-SERVER"):
        assert f"problem  [{code}]" in printed
