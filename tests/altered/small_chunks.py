"""cdc-producer that copies tables in chunks of few rows: ``run("small_chunks", ROWS, PROFILE, …)``."""

import sys

from cdc.producer import __main__ as program
from cdc.producer.copy import reader
from tests.altered.replaced import replace


def main() -> int:
    """The program, altered; its exit status where it comes to its end."""
    rows = int(sys.argv.pop(1))
    replace(reader, "_FEWEST_FIRST", rows)
    replace(reader, "_MOST_FIRST", rows)
    replace(reader, "_MOST_ROWS", 2 * rows)
    replace(reader, "_MOST_KEYS", rows)
    sys.argv[0] = "cdc-producer"
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
