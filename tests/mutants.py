"""Counts what the last `make mutants` found, by module, and names the mutants that no test noticed."""

import json
import sys
from collections import Counter
from pathlib import Path

_KILLED, _TIMED_OUT, _SURVIVED = {1, 3}, {-24, 24, 36, 152, 255}, {0, 5, 33}
_FOLDER = Path("mutants")


def main() -> int:
    """Print a line for each module, then the survivors; 1 where any mutant has not been tried."""
    untried = 0
    survivors: list[str] = []
    for path in sorted(_FOLDER.rglob("*.py.meta")):
        results: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"]
        if not results:
            continue
        found = Counter(_outcome(code) for code in results.values())
        untried += found["untried"]
        survivors += [name for name, code in results.items() if _outcome(code) == "surviving"]
        module = str(path.relative_to(_FOLDER)).removesuffix(".meta")
        counts = ", ".join(f"{found[kind]} {kind}" for kind in ("killed", "timed out", "surviving", "untried"))
        print(f"{module}: {len(results)} mutants, {counts}")
    print(*(f"  {name}" for name in survivors), sep="\n")
    print("mutmut show NAME prints what a mutant changes")
    return 1 if untried else 0


def _outcome(code: int | None) -> str:
    """How a mutant ended, by the exit status of its tests."""
    if code is None:
        return "untried"
    if code in _SURVIVED:
        return "surviving"
    return "timed out" if code in _TIMED_OUT else "killed"


if __name__ == "__main__":
    sys.exit(main())
