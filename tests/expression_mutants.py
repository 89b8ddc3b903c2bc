"""Changes Spark expressions in one place at a time, and shows which changes the tests of their modules do not notice.

mutmut forks a process for each mutant, which can't share a JVM; here all mutants are tried in one process, whose JVM is
warm. ``python tests/expression_mutants.py [MODULE...]``; ``make mutants`` runs it after mutmut.
"""

import ast
import os
import re
import shutil
import signal
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

MODULES = {
    "cdc/spark/compare/fold.py": ["tests/spark/test_fold_model.py", "tests/spark/test_judge.py"],
    "cdc/spark/streams/watermark.py": ["tests/spark/test_watermark.py", "tests/spark/test_judge.py"],
}
# What is changed to what: in strings, which are Spark's SQL or names of columns, and anywhere in the code.
_IN_STRINGS = [
    (" = ", " != "), (r"\bNOT ", ""), ("IS NOT NULL", "IS NULL"), ("IS NULL", "IS NOT NULL"), (" AND ", " OR "),
    (" OR ", " AND "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\b0L?\b", "1"), (r"\b1L?\b", "2"),
    (r"\bbefore\b", "after"), (r"\bafter\b", "before"), (r"\badds\b", "removes"), (r"\bremoves\b", "adds"),
    (r"\bold\b", "new"), (r"\bnew\b", "old"), (r"\bsince\b", "upto"), (r"\bupto\b", "since"),
    ("bool_or", "bool_and"), ("left_semi", "left_anti"),
]  # fmt: skip
_ANYWHERE = [
    (" >= ", " > "), (" <= ", " < "), (" > ", " >= "), (" < ", " <= "), (" == ", " != "), (" != ", " == "),
    (r" \+ ", " - "), (" - ", " + "), (" & ", " | "), (r"\bmax(?=\()", "min"), (r"\bmin(?=\()", "max"),
    (r"\bmax_by\b", "min_by"), (r"\bmin_by\b", "max_by"), (r"\blag\b", "lead"), (r"\blead\b", "lag"),
    (r"\bTrue\b", "False"), (r"\bFalse\b", "True"), (r"\bis None\b", "is not None"), (r"\bis not None\b", "is None"),
    (r"\.isNotNull\(", ".isNull("),
]  # fmt: skip
_SECONDS = 300


@dataclass(frozen=True)
class Mutant:
    """One change of a module's source."""

    module: str
    line: int
    text: str
    source: str


def mutants(module: str) -> Iterator[Mutant]:
    """Every change of the module by the rules above; documentation, imports and ``__all__`` stay as they are."""
    source = Path(module).read_text(encoding="utf-8")
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    strings, left = _strings(source, starts), _left_alone(source, starts)
    for rules, places in ((_IN_STRINGS, strings), (_ANYWHERE, [(0, len(source))])):
        for old, new in rules:
            for found in re.finditer(old, source):
                start, end = found.span()
                if any(a <= start < b for a, b in left) or not any(a <= start and end <= b for a, b in places):
                    continue
                line = source.count("\n", 0, start)
                changed = source[:start] + new + source[end:]
                yield Mutant(module, line + 1, changed.splitlines()[line].strip(), changed)


def _strings(source: str, starts: list[int]) -> list[tuple[int, int]]:
    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)]
    return [_span(node, starts) for node in found if isinstance(node, ast.JoinedStr) or isinstance(node.value, str)]


def _left_alone(source: str, starts: list[int]) -> list[tuple[int, int]]:
    """The places of documentation, comments, imports, annotations and ``__all__``."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        documentation = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        exports = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if isinstance(node, ast.Import | ast.ImportFrom) or documentation or exports:
            assert isinstance(node, ast.stmt)
            spans.append(_span(node, starts))
        elif isinstance(node, ast.FunctionDef):
            spans.append((_span(node, starts)[0], _span(node.body[0], starts)[0]))
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            begin = starts[token.start[0] - 1] + token.start[1]
            spans.append((begin, begin + len(token.string)))
    return spans


def _span(node: ast.stmt | ast.expr, starts: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def passes(mutant: Mutant, tests: list[str]) -> bool:
    """Whether the tests pass with the mutant, in the working directory's copy of the checkout."""
    module = Path(mutant.module)
    original = module.read_text(encoding="utf-8")
    module.write_text(mutant.source, encoding="utf-8")
    for name in [name for name in sys.modules if name.split(".")[0] in ("cdc", "tests")]:
        del sys.modules[name]
    signal.alarm(_SECONDS)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]) == pytest.ExitCode.OK
    finally:
        signal.alarm(0)
        module.write_text(original, encoding="utf-8")


def _too_long(*_: object) -> None:
    raise TimeoutError(f"the tests took more than {_SECONDS} s")


def main(modules: list[str]) -> int:
    """Try the mutants of the modules, or of all of them, in a copy of the checkout; print figures and survivors."""
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGALRM, _too_long)
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cdc", "tests", "pyproject.toml"):
            (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, Path(folder, name))
        os.chdir(folder)
        sys.path.insert(0, folder)
        for module in modules or MODULES:
            tests = MODULES[module]
            source = Path(module).read_text(encoding="utf-8")
            if not passes(Mutant(module, 0, "", source), tests):
                print(f"{module}: its tests fail without any change")
                return 1
            made = list({each.source: each for each in mutants(module)}.values())
            survivors = [each for each in made if passes(each, tests)]
            print(f"{module}: {len(made)} mutants, {len(made) - len(survivors)} killed")
            for each in survivors:
                print(f"  {each.line}: {each.text}")
        os.chdir(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
