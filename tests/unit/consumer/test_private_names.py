"""The private names of pymysql and mysql-replication that the code relies on: listed here, and all that it uses.

Both packages may rename them in any version; then this test fails first.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader

ROOT = Path(__file__).parents[3]
PYMYSQL = {
    "_sock": "the socket, on which the wait for a reply is ours, and which shows whether TLS is used",
    "_ssl_required": "whether a server without TLS is refused; switched off after a TLS context was given",
    "_rfile": "the file that replies are read from, replaced by SocketReader",
    "_execute_command": "query() without the wait for the reply",
    "_read_packet": "the server's request for the data of a LOAD DATA LOCAL",
    "_result": "the warnings of a LOAD DATA LOCAL, and the counts in its message; the answer of a copy's SELECT",
    "_force_close": "close(), without a word to a server whose answer is not read to its end",
}
REPLICATION = {
    "_stream_connection": "the connection over which the leader sends its binlog",
    "_BinLogStreamReader__connect_to_stream": "connects and asks the leader for its binlog",
}


def names(of: type) -> set[str]:
    """The private names that a class defines or that its methods set."""
    tree = ast.parse(inspect.getsource(of))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    mangled = {f"_{of.__name__}{name}" for name in found if name.startswith("__") and not name.endswith("__")}
    return mangled | {name for name in found if name.startswith("_") and not name.startswith("__")}


def used(private: set[str]) -> Iterator[tuple[str, str]]:
    """Where the code takes one of these names from an object other than its own ``self``: the module and the name."""
    for path in sorted((ROOT / "cdc").rglob("*.py")):
        text = path.read_text()
        if not any(name in text for name in private):
            continue  # to parse all files takes a second
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and node.attr in private:
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                if not own:
                    yield str(path.relative_to(ROOT)), node.attr


def test_the_names_exist() -> None:
    assert PYMYSQL.keys() <= names(Connection)
    assert REPLICATION.keys() <= names(BinLogStreamReader)


def test_no_other_name_is_used() -> None:
    found = dict.fromkeys(used(names(Connection) | names(BinLogStreamReader)))
    assert {name for _, name in found} == PYMYSQL.keys() | REPLICATION.keys(), list(found)
