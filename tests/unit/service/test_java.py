"""The Java of an environment: found by JAVA_HOME before PATH, and refused where it is too old or none."""

from pathlib import Path

import pytest

from cdc.errors import UserError
from cdc.service.java import require_java, require_java_for_spark


def java(folder: Path, says: str) -> Path:
    folder.mkdir()
    path = folder / "java"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("says", ['openjdk version "17.0.9" 2023-10-17', 'openjdk version "25-ea" 2025-09-16'])
def test_java_home_comes_before_path(tmp_path: Path, says: str) -> None:
    new, old = java(tmp_path / "bin", says), java(tmp_path / "old", 'java version "1.8.0_202"')
    assert require_java({"JAVA_HOME": str(tmp_path), "PATH": f"{old.parent}:/bin"}) == new
    assert require_java({"PATH": f"{new.parent}:/bin"}) == new


@pytest.mark.parametrize(("says", "what"), [
    ('java version "1.8.0_202"', "Java 8 is too old"),
    ('openjdk version "11.0.2" 2019-01-15', "Java 11 is too old"),
    ("Unable to locate a Java Runtime.", "Java does not print its version: Unable to locate"),
    ("", "Java does not print its version"),
])  # fmt: skip
def test_what_is_no_java_of_today_is_refused(tmp_path: Path, says: str, what: str) -> None:
    path = java(tmp_path / "bin", says)
    with pytest.raises(UserError, match=what) as refused:
        require_java({"PATH": f"{path.parent}:/bin"})
    assert refused.value.where == str(path)


def test_without_java_the_place_that_was_looked_in_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no Java; at PATH"):
        require_java({})
    with pytest.raises(UserError, match=f"there is no Java; at JAVA_HOME {tmp_path}"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": "/bin"})


def test_a_user_without_a_name_is_told_before_spark_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = java(tmp_path / "new", 'openjdk version "17.0.9" 2023-10-17')
    path = {"PATH": f"{found.parent}:/bin"}
    assert require_java_for_spark(path) == found
    monkeypatch.setattr("os.geteuid", lambda: 54_321)
    with pytest.raises(UserError, match="the user id 54321 has no name") as refused:
        require_java_for_spark(path)
    assert "cdc:x:54321:" in str(refused.value.hint)
