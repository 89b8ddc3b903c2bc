"""Connects to a MySQL server; if the settings require TLS, never without TLS."""

import ssl
from functools import cache
from typing import Any

import pymysql
from pymysql.constants import CLIENT, CR
from pymysql.cursors import Cursor

__all__ = ["MEND_TLS", "TLS_FAILED", "connected"]

MEND_TLS = (
    "the server's certificate must be by the authority in database.tls.ca, not expired, and for this address; or "
    "change database.tls"
)
TLS_FAILED: int = CR.CR_SSL_CONNECTION_ERROR
# These errors mean that the connection was closed; they are no evidence about certificates.
_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError)


def connected(*, server_id: int | None = None, **settings: Any) -> Any:
    """Connects with ``settings``, the arguments of pymysql.connect; the ``password`` may be a function that returns it.

    If ``server_id`` is given, the server must have this server_id: the address may belong to a proxy, or lead to
    another server than before. If another server answers, raises OperationalError with the number for an unreachable
    server.

    The password function is called for each connection, since the password may change while a program runs. If the
    settings lack ``ssl``, the connection uses TLS if the server supports it, and no certificate is checked. Raises the
    errors of the password function and of pymysql; the number of an error is TLS_FAILED if TLS fails, or if TLS is
    required and the server does not support it.
    """
    if callable(settings.get("password")):
        settings["password"] = settings["password"]()
    try:
        connection: Any = pymysql.connect(**settings) if settings.get("ssl") else _with_tls_if_offered(settings)
    except pymysql.OperationalError as error:
        cause = getattr(error, "original_exception", None)
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _BROKEN_OFF):
            raise pymysql.OperationalError(TLS_FAILED, f"TLS failed: {cause}") from None
        raise
    # pymysql before 1.2 continues in plain text if the server, or an attacker in between, claims to support no TLS. The
    # version in pyproject.toml raises an error before it sends the password; this check is for installations with
    # another version of pymysql.
    if settings.get("ssl") and not isinstance(connection._sock, ssl.SSLSocket):
        connection.close()
        raise pymysql.OperationalError(TLS_FAILED, "TLS is required, and the server does not have it")
    if server_id is not None:
        _require_server(connection, server_id)
    return connection


def _require_server(connection: Any, server_id: int) -> None:
    with connection.cursor(Cursor) as cursor:
        cursor.execute("SELECT @@GLOBAL.server_id")
        found = int(cursor.fetchone()[0])
    if found != server_id:
        connection.close()
        raise pymysql.OperationalError(
            CR.CR_CONN_HOST_ERROR, f"another server answers there now, with server_id {found} and not {server_id}"
        )


def _with_tls_if_offered(settings: dict[str, Any]) -> Any:
    # Without ``ssl``, pymysql does the same. But for each connection it first reads this machine's CA certificates,
    # which takes longer than the rest of connecting, and then does not use them.
    connection: Any = pymysql.Connection(**settings | {"ssl": _unchecked(), "defer_connect": True})
    connection._ssl_required = False
    connection.client_flag &= ~CLIENT.SSL
    connection.connect()
    return connection


@cache
def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
