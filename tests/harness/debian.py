"""Fetches Debian's packages for tests; a machine that can have none skips the tests, except in CI."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from cdc.sandbox.fetch.mysql_programs import NoDebian

__all__ = ["fetched"]

Fetched = TypeVar("Fetched")


def fetched(fetch: Callable[[], Fetched]) -> Fetched:
    """The result of ``fetch``. Skips the test if this machine can have no packages of Debian; with
    CDC_REQUIRE_INTEGRATION=1 that is an error. A fetch that fails is always one.
    """
    try:
        return fetch()
    except NoDebian as error:
        if os.environ.get("CDC_REQUIRE_INTEGRATION") == "1":
            raise
        pytest.skip(str(error))
