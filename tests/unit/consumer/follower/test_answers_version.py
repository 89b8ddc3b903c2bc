"""Servers that are no follower are refused by their name."""

import pytest

from cdc.consumer.follower.session import require_mysql, version_number, version_text
from cdc.errors import UserError


@pytest.mark.parametrize("version", ["10.11.19-MariaDB-0+deb12u1", "12.1.2-MariaDB-ubu2404-log", "5.7.44-log"])
def test_other_servers_are_named(version: str) -> None:
    with pytest.raises(UserError, match=f"the follower is {version.replace('+', '.')}"):
        require_mysql(version, where="somewhere")


@pytest.mark.parametrize("version", ["8.0.45-1", "9.7.4-2", "8.4.3-3-Percona", "10.0.0"])
def test_those_of_mysql_pass(version: str) -> None:
    require_mysql(version, where="somewhere")
    assert version.startswith(version_text(version_number(version)))
