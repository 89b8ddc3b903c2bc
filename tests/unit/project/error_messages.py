"""Every error message that cdc/ can end a program with: its code, program, exit status, text with `…` for a value."""

import ast
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
HOLE = "…"
PROGRAMS = {
    "producer": "cdc-producer",
    "consumer": "cdc-consumer",
    "spark": "cdc-audit",
    "tail": "cdc-tail",
    "sandbox": "cdc-sandbox",
    "repair": "cdc-repair",
    "seed": "cdc-seed",
    "lake": "cdc-lake",
    "web": "cdc-web",
}
SHARED = "Every program"
BASE = "CdcError"
# Sentences of the audit that are no errors but the reasons of exit status 2: what these yield, or return as a sentence.
REASONS = {
    ROOT / "cdc/spark/streams/preconditions.py", ROOT / "cdc/spark/ddl/scope.py",
    ROOT / "cdc/spark/ddl/table_copies.py", ROOT / "cdc/spark/input/spans.py",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Message:
    """``program`` is a program's name or SHARED; ``text`` has HOLE for each part that is known only at run time.

    ``code`` is empty where a sentence has none; of an error made of another one it is the expression of that one's.
    """

    program: str
    status: int
    text: str
    place: str
    code: str = ""
    hints: tuple[str, ...] = ()


@functools.cache
def _trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "cdc").rglob("*.py"))}


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Those of a module, wherever one is defined. Only statements are looked through: most nodes are expressions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            yield node
        below = (getattr(node, name, None) for name in ("body", "orelse", "handlers", "finalbody", "cases"))
        waiting += itertools.chain.from_iterable(each for each in below if isinstance(each, list))


@functools.cache
def _makers() -> dict[Path, ast.Module]:
    """The modules that may make an error: whose text names a class of errors as it is called, or that have reasons."""
    named = re.compile(rf"\b({'|'.join(_statuses())})\(")
    trees = _trees().items()
    return {path: tree for path, tree in trees if path in REASONS or named.search(path.read_text(encoding="utf-8"))}


@functools.cache
def _statuses() -> dict[str, int]:
    """The exit status of each class of errors; a class without its own has that of its base."""
    classes = [node for tree in _trees().values() for node in _classes(tree) if node.bases]
    found = {BASE: 3}
    while True:
        new = {
            each.name: _own_status(each, found[base])
            for each in classes
            for base in (ast.unparse(base) for base in each.bases)
            if base in found and each.name not in found
        }
        if not new:
            return found
        found |= new


@functools.cache
def _class_codes() -> dict[tuple[str, str], str]:
    """The codes of the classes of errors that have one for all their errors, by program and name."""
    found = {}
    for path, tree in _trees().items():
        for kind in _classes(tree):
            for node in kind.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
                    found[path.relative_to(ROOT / "cdc").parts[0], kind.name] = str(ast.literal_eval(node.value))
    return found


def _code(path: Path, call: ast.Call, name: str) -> str:
    given = next((each.value for each in call.keywords if each.arg == "code"), None)
    if given is None:
        return _class_codes().get((path.relative_to(ROOT / "cdc").parts[0], name), "")
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ast.unparse(given)


def _own_status(kind: ast.ClassDef, inherited: int) -> int:
    for node in kind.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "exit_status":
            return int(ast.literal_eval(node.value))
    return inherited


class _Texts:
    """What an expression of a module can be as text; a parameter is what the module's own calls give it."""

    def __init__(self, tree: ast.Module) -> None:
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        self.constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant)
        }

    def of(self, node: ast.expr, within: ast.FunctionDef | None, depth: int = 3) -> set[str]:
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                texts = [self.of(part, within, depth) for part in parts]
                return {"".join(each) for each in itertools.product(*texts)}
            case ast.FormattedValue(value=value, format_spec=None):
                return self.of(value, within, depth)
            case ast.IfExp(body=one, orelse=other):
                return self.of(one, within, depth) | self.of(other, within, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return {a + b for a in self.of(left, within, depth) for b in self.of(right, within, depth)}
            case ast.Name(id=name) if within and depth:
                return self._named(name, within, depth - 1)
        return {HOLE}

    def _named(self, name: str, within: ast.FunctionDef, depth: int) -> set[str]:
        if name in self.constants:
            return self.of(self.constants[name], None)
        parameters = [each.arg for each in within.args.args]
        if name in parameters:
            at = parameters.index(name)
            given = [
                call.args[at]
                for call in self.calls
                if isinstance(call.func, ast.Name) and call.func.id == within.name and len(call.args) > at
            ]
        else:
            given = [
                node.value
                for node in ast.walk(within)
                if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]
            ]
        return set().union(*(self.of(each, None, depth) for each in given)) if given else {HOLE}


@functools.cache
def messages() -> list[Message]:
    """All of them, sorted. An error that is made of another one's text only is left out."""
    return sorted({message for path, tree in _makers().items() for message in _in(path, tree)})


def _in(path: Path, tree: ast.Module) -> Iterator[Message]:
    relative = path.relative_to(ROOT / "cdc")
    program = PROGRAMS.get(relative.parts[0], SHARED)
    texts = _Texts(tree)
    for node, within in _with_function(tree):
        name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in _statuses() and node.args:
            status, said, place = _statuses()[name], node.args[0], f"{relative}:{node.lineno}"
            hints = _joined(texts.of(each.value, within) for each in node.keywords if each.arg == "hint")
            code = _code(path, node, name)
        elif path in REASONS and (
            (isinstance(node, ast.Yield) and node.value)
            or (isinstance(node, ast.Return) and isinstance(node.value, ast.JoinedStr))
        ):
            assert node.value is not None
            status, said, place, hints, code = 2, node.value, f"{relative}:{node.lineno}", (), ""
        else:
            continue
        every = texts.of(said, within)
        worded = {text for text in every if any(letter.isalpha() for letter in text)}
        for text in worded or (every if code.startswith("CDC-") else ()):
            yield Message(program, status, _closed(text), place, code, hints)


def _joined(every: Iterable[set[str]]) -> tuple[str, ...]:
    """All texts with words."""
    return tuple(sorted(_closed(text) for texts in every for text in texts if any(map(str.isalpha, text))))


def _closed(text: str) -> str:
    """Without line breaks, and with one HOLE for several beside one another."""
    return re.sub(f"{HOLE}( ?{HOLE})+", HOLE, " ".join(text.split()))


def raised_without_code() -> list[str]:
    """The places of errors that have a hint, and neither a code nor that of the error of which they are made."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in _makers().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(each.arg == "hint" for each in node.keywords)
        for name in [ast.unparse(node.func).rpartition(".")[2]]
        if name in _statuses() and not re.fullmatch(r"CDC(-[A-Z0-9]+)+|\w+\.code", _code(path, node, name))
    ]


def _with_function(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.FunctionDef | None]]:
    """Every node below, with the innermost function that it is in."""
    waiting: list[tuple[ast.AST, ast.FunctionDef | None]] = [(tree, None)]
    while waiting:
        node, within = waiting.pop()
        inside = node if isinstance(node, ast.FunctionDef) else within
        below = [(child, inside) for child in ast.iter_child_nodes(node)]
        yield from below
        waiting += below
