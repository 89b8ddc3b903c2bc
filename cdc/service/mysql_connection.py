"""A connection to a MySQL server as the profile wants it: where it says TLS, there is none without."""

import ssl
from typing import Any

import pymysql
from pymysql.constants import CR

__all__ = ["TLS_FAILED", "connected"]

TLS_FAILED: int = CR.CR_SSL_CONNECTION_ERROR
# The other end just went away: that is no word on certificates.
_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError)


def connected(**settings: Any) -> Any:
    """pymysql's connection with ``settings``, its arguments.

    Raises pymysql's errors; with the number TLS_FAILED where there is no TLS as it was asked for.
    """
    try:
        connection: Any = pymysql.connect(**settings)
    except pymysql.OperationalError as error:
        cause = getattr(error, "original_exception", None)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _BROKEN_OFF):
            raise pymysql.OperationalError(TLS_FAILED, f"TLS failed: {cause}") from None
        raise
    # pymysql before 1.2 went on in plain text where the server, or someone between, said that it has no TLS. The exact
    # version in pyproject.toml refuses that before the password is sent; this is for who runs another one.
    if settings.get("ssl") and not isinstance(connection._sock, ssl.SSLSocket):
        connection.close()
        raise pymysql.OperationalError(TLS_FAILED, "TLS is asked for, and the server does not have it")
    return connection
