"""docs/what-if.md has each message with which a program ends, under its program and exit status, and no other one.

`python -m tests.unit.project.test_what_if` lists what is missing and what is there in vain.
"""

import difflib
import re
import sys

import pytest

from tests.unit.project.error_messages import HOLE, ROOT, SHARED, Message, messages

PAGE = ROOT / "docs/what-if.md"


def phrases() -> dict[tuple[str, int], list[str]]:
    """The messages that the page cites, by program and exit status."""
    found: dict[tuple[str, int], list[str]] = {}
    program, status = "", 0
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## (.+)", line):
            program, status = heading[1], 0
        elif heading := re.fullmatch(r"### Exit status (\d)", line):
            status = int(heading[1])
        elif status and line.startswith("| `"):
            found.setdefault((program, status), []).extend(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    return found


def covers(phrase: str, text: str) -> bool:
    """A phrase is the whole text, or, where it ends with the sign for a value, the text's beginning of some words."""
    start = phrase.removesuffix(HOLE)
    return text == phrase or (start != phrase and text.startswith(start) and sum(map(str.isalpha, start)) >= 10)


def missing() -> list[Message]:
    """Messages that neither their program's section nor the section of every program has."""
    cited = phrases()
    return [
        each
        for each in messages()
        if not any(
            covers(phrase, each.text)
            for program in (each.program, SHARED)
            for phrase in cited.get((program, each.status), [])
        )
    ]


def in_vain() -> list[tuple[str, int, str]]:
    """Phrases of the page, with their section, that cover no message."""
    return [
        (program, status, phrase)
        for (program, status), cited in phrases().items()
        for phrase in cited
        if not any(
            covers(phrase, each.text)
            for each in messages()
            if each.status == status and program in (each.program, SHARED)
        )
    ]


def test_every_message_has_its_row() -> None:
    assert [f"{each.program} {each.status} `{each.text}` ({each.place})" for each in missing()] == []


def test_no_row_cites_a_message_that_is_not_there() -> None:
    assert in_vain() == []


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
    """Print what the page lacks, each with the row that may have been it, and what it has in vain."""
    former = in_vain()
    for each in missing():
        texts = [phrase for *section, phrase in former if section == [each.program, each.status]]
        near = difflib.get_close_matches(each.text, texts, n=1, cutoff=0.4)
        print(f"missing  {each.program} {each.status}  `{each.text}`  {each.place}  hint: {each.hint}")
        print(f"    was  `{near[0]}`" if near else "    new")
    for program, status, phrase in former:
        print(f"in vain  {program} {status}  `{phrase}`")
    return 1 if former or missing() else 0


if __name__ == "__main__":
    sys.exit(main())
