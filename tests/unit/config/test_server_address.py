"""Addresses of servers in a profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.profile import ServerAddress
from cdc.errors import UserError

HOSTS = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True) | st.ip_addresses().map(str)


@given(HOSTS, st.integers(1, 65_535))
def test_an_address_is_read_as_it_is_told(host: str, port: int) -> None:
    address = ServerAddress(host, port)
    assert ServerAddress.parse(str(address), key="k") == address


@pytest.mark.parametrize(
    "text", ["", "db", "db:", ":3306", "db:0", "db:65536", "db:x", "::1", "::1:3306", "a b:1", "[::1]"]
)
def test_other_text_is_refused_with_the_key(text: str) -> None:
    with pytest.raises(UserError, match="is no address of a server") as refused:
        ServerAddress.parse(text, key="producer.copy_replicas")
    assert "producer.copy_replicas" in str(refused.value)
