"""Who asks the brokers for all topics: a request for metadata without a topic costs as much as the cluster is large."""

import ast
from pathlib import Path

import cdc


def test_only_the_list_of_topics_asks_for_all() -> None:
    """And a sandbox as it starts a broker of its own."""
    root = Path(cdc.__file__).parent
    calls = {
        str(file.relative_to(root)): node
        for file in root.rglob("*.py")
        if "list_topics" in (text := file.read_text())  # to parse all files takes a second
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "list_topics" and not node.args
    }
    assert calls.keys() == {"browse/cluster.py", "sandbox/server/kafka.py"}
