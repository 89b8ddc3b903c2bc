"""What the sandbox works out without a server: the Debian mirror of a machine, the profiles for its ports."""

from pathlib import Path

import pytest

from cdc.config.profile import load
from cdc.errors import UserError
from cdc.sandbox.fetch.mysql_programs import mirror
from cdc.sandbox.servers import ProfileFiles

ONE_LINE = """
# deb http://commented.example/debian bookworm main
deb http://security.debian.org/debian-security bookworm-security main
deb [signed-by=/usr/share/keyrings/x.gpg arch=amd64] https://packages.example/tool stable main
deb [arch=amd64] http://mirror.example/debian bookworm main contrib # ours
"""
DEB822 = """
Types: deb
URIs: https://packages.example/debian
Suites: stable
Components: tool

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: trixie
Components: main

# a comment
Types: deb deb-src
URIs:
 http://mirror.example/debian/
Suites: trixie trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEZ
"""


@pytest.mark.parametrize(
    ("file", "text"), [("sources.list", ONE_LINE), ("a.list", ONE_LINE), ("debian.sources", DEB822)]
)
def test_the_mirror_is_read_from_apts_sources(tmp_path: Path, file: str, text: str) -> None:
    folder = tmp_path if file == "sources.list" else tmp_path / "sources.list.d"
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(text)
    assert mirror(tmp_path, "").rstrip("/") == "http://mirror.example/debian"


def test_a_machine_without_debian_sources_is_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://archive.ubuntu.example/ubuntu noble main\n")
    with pytest.raises(UserError, match="install mysql-server"):
        mirror(tmp_path, "install mysql-server")


@pytest.mark.parametrize("name", ["producer", "consumer", "follower"])
def test_the_repositorys_profiles_fit_a_sandbox_on_the_default_ports(tmp_path: Path, name: str) -> None:
    written = ProfileFiles.below(tmp_path)
    written.write(leader_port=3080, follower_port=3090, kafka_port=9092)
    repository = ProfileFiles.below(Path(__file__).parents[3])
    assert load(getattr(written, name)) == load(getattr(repository, name))
