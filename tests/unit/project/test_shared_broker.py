"""All tests share one broker, so each gives its topics a name of its own: of two, the later one would find records."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]
# The argument that names the topic, by keyword or, for the last two, as the first one.
NAMED_BY = {"write_profile": ("topic", "name"), "Topics": ("topic",), "NewTopic": ("topic",)}


def names(function: ast.FunctionDef) -> Iterator[str]:
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in NAMED_BY:
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            named = [given[key] for key in NAMED_BY[call.func.id] if key in given]
            if call.func.id != "write_profile":
                named += call.args[:1]
            if named and isinstance(named[0], ast.Constant):
                yield str(named[0].value)


def test_no_two_tests_use_topics_of_one_name() -> None:
    users = defaultdict[str, set[str]](set)
    for path in [*TESTS.glob("integration/**/*.py"), *TESTS.glob("spark/**/*.py")]:
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef) and "kafka_broker" not in {a.arg for a in function.args.args}:
                for name in names(function):
                    users[name].add(f"{path.relative_to(TESTS)}: {function.name}")
    assert len(users) > 20
    assert {name: at for name, at in users.items() if len(at) > 1} == {}
