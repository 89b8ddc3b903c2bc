"""Docstrings, comments and documents are plain technical English: banned patterns and names do not come back.

``DONE`` lists the packages that are free of them, and only grows. All documents are, except the history. ``python -m
tests.unit.project.test_words [PATH …]`` lists the lines with a pattern, of all packages and documents by default.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})

DONE = ("bench", "cdc", "tests/generators", "tests/harness", "tests/unit/project/test_words.py")

PATTERNS = {
    "a sentence that begins with Of": r"(?:^|[.:;!?]\s)Of\s(?!course\b)",
    "a caption without a verb (X in, Y out)": r"\bin,(?: and)? [^.;:]{1,80}\bout\b(?=[.,:;]|$)|\bcomes? out$",
    "what is there": r"\bwhat (?:is|was|are|there is|there was) there\b|\bwhat there is\b",
    "none where": r"\b[Nn]one where\b",
    "who without a noun before it": r"(?:^|[.,:;(]\s|\b(?:to|by|for|than|that|of|and|or|but|as)\s)[Ww]ho\b",
}
PATTERNS_OF_DOCSTRINGS = PATTERNS | {
    "told, tells or says for records and logs": r"\b(?:told|tells?|says?|said)\b",
    "a docstring that begins with As": r"^As ``",
    "where for a condition": r"\b(?:None|NULL|[Ee]mpty|False) where\b|\b[Rr]aises? [A-Z][^.;]*? where\b",
    "take notice": r"\b[Tt]akes? notice\b",
}
# The module or the name that the house used before, and the one that it uses now.
BANNED_MODULES = {
    "attachment": "base_copy",
    "copied": "base_copy",
    "covering": "chunk_plan",
    "extent": "range",
    "server_made": "server_rewritten_sql",
}
BANNED_NAMES = {
    "Moved": "PositionAdvanced",
    "UntilError": "DeferErrors",
    "Whole": "RowsTransaction",
    "Widened": "FilterChange",
}

_QUOTED = re.compile(r"``[^`]*``|`[^`]*`|\"[^\"\n]*\"", re.DOTALL)


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each paragraph of the docstrings, and each block of comments, with its line."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                for paragraph in each.value.value.split("\n\n"):
                    yield each.lineno, " ".join(paragraph.split())
    yield from _comments(source)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    begin, end, words = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("#").strip()
        if line != end + 1 and words:
            yield begin, " ".join(words)
            words = []
        begin, end, words = (begin if words else line), line, [*words, text]
    if words:
        yield begin, " ".join(words)


def paragraphs(document: str) -> Iterator[tuple[int, str]]:
    """Each paragraph, item and cell of a table in a Markdown ``document``, with its line; without blocks of code."""
    text = re.sub(
        r"^ *```.*?^ *```", lambda match: "\n" * match[0].count("\n"), document, flags=re.DOTALL | re.MULTILINE
    )
    line, words = 1, list[str]()
    for number, each in enumerate(text.split("\n"), 1):
        starts = each.lstrip().startswith(("- ", "|", "#")) or re.match(r"\s*\d+\. ", each)
        if (not each.strip() or starts) and words:
            yield line, " ".join(words)
            words = []
        if each.lstrip().startswith("|"):
            yield from ((number, cell.strip()) for cell in each.strip().strip("|").split("|"))
        elif each.strip():
            line, words = (line if words else number), [*words, each.strip().removeprefix("- ")]
    if words:
        yield line, " ".join(words)


def banned(text: str, patterns: dict[str, str] = PATTERNS_OF_DOCSTRINGS) -> list[str]:
    """The names of the banned patterns in ``text``, outside of quotes and of code."""
    plain = _QUOTED.sub("``x``", text)
    return [name for name, pattern in patterns.items() if re.search(pattern, plain)]


def problems(path: Path) -> list[str]:
    """The banned patterns in a file, one line each."""
    content, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
    found, patterns = (
        (texts(content), PATTERNS_OF_DOCSTRINGS) if path.suffix == ".py" else (paragraphs(content), PATTERNS)
    )
    return [f"{where}:{line}: {name}: {text[:100]}" for line, text in found for name in banned(text, patterns)]


def _names(path: Path) -> list[str]:
    content = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(content).readline)
    return [f"{path.relative_to(ROOT)}: {token.string} is {BANNED_NAMES[token.string]}"
            for token in tokens if token.type == tokenize.NAME and token.string in BANNED_NAMES]  # fmt: skip


@pytest.mark.parametrize("package", DONE)
def test_docstrings_and_comments_have_no_banned_pattern(package: str) -> None:
    files = _python_files(ROOT / package)
    assert files
    assert [line for file in files for line in problems(file)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_have_no_banned_pattern(document: Path) -> None:
    assert problems(document) == []


@pytest.mark.parametrize("package", DONE)
def test_banned_names_do_not_come_back(package: str) -> None:
    files = [file for file in _python_files(ROOT / package) if file != Path(__file__)]
    paths = [file.relative_to(ROOT).with_suffix("") for file in files]
    assert [f"{path}: {BANNED_MODULES[part]}" for path in paths for part in path.parts if part in BANNED_MODULES] == []
    assert [line for file in files for line in _names(file)] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Of the partitions each has the sequence.", "a sentence that begins with Of"),
        ("The counts. Of the others nothing is known.", "a sentence that begins with Of"),
        (
            "Rows events in, their rows as JSON text out: keeps the table maps.",
            "a caption without a verb (X in, Y out)",
        ),
        ("What is copied in, what is logged of it out.", "a caption without a verb (X in, Y out)"),
        ("The range becomes what is there.", "what is there"),
        ("The newest entry; None where there is none.", "none where"),
        ("A traceback says nothing that who interrupts an audit does not know.", "who without a noun before it"),
        ("The types of columns as records tell them.", "told, tells or says for records and logs"),
        ("As ``rows``, with the tags.", "a docstring that begins with As"),
        ("A number of rows, None where they are not known.", "where for a condition"),
        ("Take a snapshot. Raises TableChanged where it is another one.", "where for a condition"),
        ("Take notice of a change by a transaction.", "take notice"),
    ],
)
def test_patterns_find_what_they_ban(text: str, name: str) -> None:
    assert name in banned(text)


@pytest.mark.parametrize(
    "text",
    [
        "A function of the profile, of which ``told`` is a part.",
        "The operator who starts it needs a grant.",
        "The packets that arrive in a socket.",
        'The message is "the leader says no".',
    ],
)
def test_patterns_accept_plain_sentences(text: str) -> None:
    assert banned(text) == []


def test_texts_are_docstrings_and_comments() -> None:
    source = '"""A module.\n\nIts rest."""\n\n# One comment\n# of two lines.\nx = 1  # beside\n"""An attribute."""\n'
    assert [text for _, text in texts(source)] == [
        "A module.", "Its rest.", "An attribute.", "One comment of two lines. beside",
    ]  # fmt: skip


def main(paths: list[str]) -> int:
    """Lists the banned patterns in ``paths``, or in everything."""
    everything = ["cdc", "bench", "tests", *(str(path.relative_to(ROOT)) for path in DOCUMENTS)]
    wanted = [ROOT / path for path in paths or everything]
    found = [line for path in wanted for file in _python_files(path) for line in problems(file)]
    print("\n".join(found))
    print(f"{len(found)} found", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
