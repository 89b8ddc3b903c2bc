"""Several servers are asked at the same moment: one that is silent delays nothing once another one has decided."""

import threading

import pytest

from cdc.service.asked_at_once import asked_at_once


def test_a_silent_server_is_not_waited_for() -> None:
    silent, both = threading.Event(), threading.Barrier(2)

    def ask(server: str) -> str:
        if server == "silent":
            silent.wait()
        elif server != "late":
            both.wait(60)  # both at the same moment, or this raises
        return server.upper()

    try:
        found = asked_at_once(["silent", "b", "a"], ask, decides=lambda answer: answer == "A")
    finally:
        silent.set()
    assert list(found.items()) == [("b", "B"), ("a", "A")]
    assert asked_at_once(["late"], ask, decides=lambda _: False) == {"late": "LATE"}


def test_an_error_is_raised() -> None:
    def ask(server: str) -> str:
        raise ValueError(server)

    with pytest.raises(ValueError, match="a"):
        asked_at_once(["a"], ask, decides=lambda _: True)
