"""What the server's error numbers mean for what was tried."""

__all__ = ["DENIED", "NO_SUCH_THREAD", "TRANSIENT", "UNREACHABLE", "Denied", "Interrupted", "Refused", "Stopped"]

# Numbers: MySQL manual, "Server Error Message Reference" and "Client Error Message Reference".
TRANSIENT = frozenset({
    1021, 1114,  # disk or table full: space may be made
    1040, 1041, 1203,  # too many connections, out of memory
    1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031,  # shutdown, connection lost
    1205, 1213, 3572, 3024,  # lock wait, deadlock, statement timeout
    1317,  # KILL QUERY: somebody took it for too long, or in the way
    1290, 1836,  # the server is read-only for now
    3100, 3101,  # a plugin (group replication) refused the commit
    2002, 2003, 2006, 2013, 2055,
})  # fmt: skip
UNREACHABLE = frozenset({0, 2002, 2003, 2006, 2013, 2055})
DENIED = frozenset({1044, 1045, 1698, 1142, 1143, 1227, 1370, 3118, 3159, 1862})
NO_SUCH_THREAD = 1094


class Interrupted(Exception):
    """The server or the connection stopped a statement that may well succeed later; the transaction is void.

    ``code`` is the server's error, 0 where it gave none.
    """

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Stopped(Interrupted):
    """We were told to stop while the server let us wait."""


class Refused(Exception):
    """The server refuses a statement: ``code`` and ``text`` are its error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.text} (MySQL error {self.code})"


class Denied(Refused):
    """The server refuses because the account, its password or its grants do not allow it."""
