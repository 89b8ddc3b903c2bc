"""The blocks of commands in the documents, and how each is to be run.

Each block ```sh is run, unless a comment before it says why not: `<!-- not run: needs Docker … -->`. Others say how:

    <!-- run: exit status 2, … -->       each command must end with that status, not with 0
    <!-- run: until it prints TEXT -->   then it goes on until the page's end, and must end well by SIGTERM
    <!-- run: beside COMMAND -->         COMMAND runs in the background until the block's end

A program that never ends by itself (`cdc-producer PROFILE`) runs until the page's end without such a comment.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# First what starts the sandbox; its last block, which stops it, comes after all other pages.
PAGES = [ROOT / "docs/try-it.md", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAKE = re.compile(r"make (\w[\w-]*)( && \. \.venv/bin/activate)?")


@dataclass(frozen=True)
class Block:
    """The commands of one block, and what the comment before it says, such as ``run: exit status 2``."""

    page: Path
    line: int
    comment: str
    commands: list[str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return not self.comment.startswith("not run: ")

    @property
    def status(self) -> int:
        wanted = re.match(r"run: exit status (\d)", self.comment)
        return int(wanted[1]) if wanted else 0


def blocks(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines):
        if line in ("```sh", "```console", "```bash"):
            body = "\n".join(lines[number + 1 : lines.index("```", number)]).replace("\\\n", " ")
            comment = re.fullmatch("<!-- (.+) -->", lines[number - 1])
            commands = [" ".join(shlex.split(each, comments=True)) and each.strip() for each in body.splitlines()]
            commands = [re.sub(r"\s+#\s.*", "", each) for each in commands if each]
            found.append(Block(page, number + 1, comment[1] if comment else "", commands))
    return found


ALL = [block for page in dict.fromkeys(PAGES) for block in blocks(page)]


def _lines(page: Path) -> list[str]:
    """The commands in the last column of a page's tables."""
    rows = page.read_text(encoding="utf-8").splitlines()
    return [found[1] for row in rows if (found := re.fullmatch(r"\| .+ \| `([^`]+)` \|", row))]


LINES = _lines(ROOT / "docs/try-it.md")
