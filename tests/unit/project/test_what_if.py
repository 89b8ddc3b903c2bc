"""docs/what-if.md has each code with which a program ends, under its program and exit status, with its messages.

Codes, messages and what begins with "hint: " are made from cdc/; the rest is written by hand, where more is to be said.
`python -m tests.unit.project.test_what_if` writes the page anew: it adds codes, removes those that are gone, and
corrects their messages. The audit's reasons for no verdict are no errors, and have rows without a code.
"""

import functools
import re
import sys
from collections.abc import Iterator

import pytest

from tests.unit.project.error_messages import HOLE, ROOT, SHARED, Message, messages, raised_without_code

PAGE = ROOT / "docs/what-if.md"
Section = tuple[str, int]
"""A program, or SHARED, and an exit status."""


def lines() -> list[str]:
    return PAGE.read_text(encoding="utf-8").splitlines()


def in_sections(page: list[str]) -> Iterator[tuple[Section, str]]:
    """Each line with its section."""
    program, status = "", 0
    for line in page:
        if heading := re.fullmatch(r"## (.+)", line):
            program, status = heading[1], 0
        elif heading := re.fullmatch(r"### Exit status (\d)", line):
            status = int(heading[1])
        yield (program, status), line


def code_of(line: str) -> str:
    found = re.match(r"\| `(CDC-[A-Z0-9-]+)` \| ", line)
    return found[1] if found else ""


@functools.cache
def by_code() -> dict[str, list[Message]]:
    found: dict[str, list[Message]] = {}
    for each in messages():
        if each.code.startswith("CDC-"):
            found.setdefault(each.code, []).append(each)
    return found


def hinted(of_code: list[Message]) -> str:
    """The cell of what to do, where that is what the hints say."""
    hints = sorted({hint for each in of_code for hint in each.hints})
    return "hint: " + "; or ".join(f"`{hint}`" if "`" not in hint else f"`` {hint} ``" for hint in hints)


def said(of_code: list[Message]) -> str:
    """The cell of a code's messages."""
    return ", ".join(f"`{text}`" for text in sorted({each.text for each in of_code}))


def written(page: list[str]) -> list[str]:
    """The page with the codes and messages that cdc/ has, and with what it says about them."""
    codes, made, last = by_code().copy(), [], dict[Section, int]()
    for section, line in in_sections(page):
        code = code_of(line)
        if not code:
            made.append(line)
        elif code in codes:
            means, to_do = line.removesuffix(" |").rsplit(" | ", 2)[1:]
            to_do = hinted(codes[code]) if to_do.startswith("hint: ") else to_do
            made.append(f"| `{code}` | {said(codes.pop(code))} | {means} | {to_do} |")
        if line.startswith("| "):
            last[section] = len(made)
    added = [((of_code[0].program, of_code[0].status), code) for code, of_code in codes.items()]
    # From the page's end on, so that each place stays where it was.
    for section, code in sorted(added, key=lambda each: (last.get(each[0], len(made)), each[1]), reverse=True):
        row = f"| `{code}` | {said(codes[code])} | as its words say | {hinted(codes[code])} |"
        made.insert(last.get(section, len(made)), row)
    return made


def covers(phrase: str, text: str) -> bool:
    """A phrase is the whole text, or, where it ends with the sign for a value, the text's beginning of some words."""
    start = phrase.removesuffix(HOLE)
    return text == phrase or (start != phrase and text.startswith(start) and sum(map(str.isalpha, start)) >= 10)


def reasons() -> list[str]:
    """The phrases of the rows without a code."""
    rows = (line.split(" | ")[1] for line in lines() if line.startswith("| – | "))
    return [phrase for cell in rows for phrase in re.findall(r"`([^`]+)`", cell)]


def test_the_page_has_the_codes_and_messages_of_the_code() -> None:
    assert lines() == written(lines())


def test_every_error_with_a_hint_has_a_code() -> None:
    assert raised_without_code() == []


def test_each_code_is_in_the_section_of_its_errors() -> None:
    """All errors of a code have one exit status, and are of one program or of every program.

    One test for all: as cases of a test, the codes would be found in the source whenever tests are collected.
    """
    found = [(code, section) for section, line in in_sections(lines()) if (code := code_of(line))]
    assert sorted(code for code, _ in found) == sorted(by_code())
    for code, (program, status) in found:
        assert {each.status for each in by_code()[code]} == {status}, code
        assert program == SHARED or {each.program for each in by_code()[code]} <= {program, SHARED}, code


def test_every_reason_for_no_verdict_has_its_row() -> None:
    given = [each.text for each in messages() if not each.code]
    assert [text for text in given if not any(covers(phrase, text) for phrase in reasons())] == []
    assert [phrase for phrase in reasons() if not any(covers(phrase, text) for text in given)] == []


def test_a_page_is_written_anew_with_its_prose() -> None:
    row = next(line for line in lines() if code_of(line))
    changed = [line.replace(row, row.replace("` | `", "` | `another ", 1)) for line in lines()]
    assert changed != lines()
    assert written(changed) == lines()
    assert row.replace(code_of(row), "CDC-NO-SUCH") not in written([*lines(), row.replace(code_of(row), "CDC-NO-SUCH")])
    [added] = [line for line in written([line for line in lines() if line != row]) if code_of(line) == code_of(row)]
    assert " | as its words say | hint: " in added


def test_messages_are_found_with_their_values_left_open() -> None:
    found = {(each.program, each.status, each.text) for each in messages()}
    assert len(found) > 200
    assert {status for _, status, _ in found} == {2, 3, 4}
    assert (SHARED, 2, "unknown key") in found
    assert any(HOLE in text for *_, text in found)


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("no such topic", "no such topic", True),
        ("no such topic", "no such topic: …", False),
        ("no such topic: …", "no such topic: …, or not here", True),
        ("such topic …", "no such topic", False),
        ("… is not …", "… is not a position", False),
    ],
)
def test_a_phrase_covers_what_begins_like_it(phrase: str, text: str, expected: bool) -> None:
    assert covers(phrase, text) is expected


def main() -> int:
    PAGE.write_text("\n".join([*written(lines()), ""]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
