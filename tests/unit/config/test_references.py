"""References to secrets in a profile, and the command that prints a password."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.profile import Profile
from cdc.config.toml_tables import output_of, resolved_text
from cdc.errors import Disconnected, UserError


def test_references_are_replaced_in_every_string(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from\nfile\r\n\n")
    monkeypatch.setenv("HERE", "${env:THERE}")
    monkeypatch.setenv("EMPTY", "")
    profile = Profile.parse(
        f"""
        mysql_resource_name = "${{env:HERE}}-${{env:EMPTY}}1"
        [filters]
        include_tables = ["a.b", "$${{env:HERE}}.$x"]
        [kafka.librdkafka]
        "sasl.password" = "${{file:{tmp_path}/key}}!"
        """,
        name="p",
    )
    # What a reference stands for is text, whatever it looks like.
    assert profile.mysql_resource_name == "${env:THERE}-1"
    assert profile.filters.include_tables == ("a.b", "${env:HERE}.$x")
    assert profile.kafka.properties()["sasl.password"] == "from\nfile!"


@pytest.mark.parametrize(("value", "what"), [
    ("${env:NOT_THERE}", "environment variable NOT_THERE is not set; at p, profile key kafka.topic"),
    ("x${file:/not/there}", "no such file: /not/there; at p, profile key kafka.topic"),
    ("${file:}", "cannot read"),
    ("${env:}", "environment variable  is not set"),
])  # fmt: skip
def test_a_reference_to_nothing_is_refused_with_its_key(value: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        Profile.parse(f'[kafka]\ntopic = "{value}"', name="p")
    assert " ".join(what.split()) in str(caught.value)


@given(st.text(st.characters(exclude_characters="$")), st.text(st.sampled_from("${}ab:")))
def test_other_text_is_left_as_it_is(before: str, after: str) -> None:
    for text in (before, after):
        assert resolved_text(text, key="k") == text


def test_the_password_is_read_at_each_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    keys = {
        "password": f"a${{file:{path}}}",
        "password_file": str(path),
        "password_command": [sys.executable, "-c", f"print('a' + open('{path}').read())"],
    }
    for key, value in keys.items():
        path.write_text("first")
        settings = Profile.parse(f"[database]\n{key} = {value!r}", name="p").database.settings()
        first = settings["password"]()
        path.write_text("ü")
        assert (first.removeprefix(b"a"), settings["password"]()[-2:]) == (b"first", "ü".encode())
    monkeypatch.delenv("GONE", raising=False)
    with pytest.raises(UserError, match=r"GONE is not set; at profile key database\.password"):
        Profile.parse('[database]\npassword = "${env:GONE}"', name="p").database.secret()
    with pytest.raises(UserError, match="password_file and password_command are both set"):
        Profile.parse('[database]\npassword_file = "f"\npassword_command = ["c"]', name="p").database.secret()


def test_a_command_that_fails_is_tried_again_and_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(script: str) -> str:
        return output_of([sys.executable, "-c", script, "secret argument"], key="k")

    assert ran("print('  token=\\n\\n')") == "  token="
    for script, what in (
        ("print('half'); import sys; print('long', file=sys.stderr); sys.exit('expired')", "exit status 1: expired"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit status -9"),
        ("print()", "has printed no password"),
        ("assert input()", "exit status 1"),  # nothing is to be read
    ):
        with pytest.raises(Disconnected, match=what) as caught:
            ran(script)
        assert "secret" not in str(caught.value)
        assert "half" not in str(caught.value)
    monkeypatch.setattr("cdc.config.toml_tables._COMMAND_SECONDS", 0.01)
    with pytest.raises(Disconnected, match="has not ended in 0 s"):
        ran("import time; time.sleep(600)")
    with pytest.raises(UserError, match="cannot run /not/there: No such file"):
        output_of(["/not/there"], key="k")
    with pytest.raises(UserError, match="Permission denied"):
        output_of([os.devnull], key="k")
