"""Asks the program in this container for a page, such as /livez; exit status 1 if the answer is not 200."""

import os
import sys
from urllib.request import urlopen

_SECONDS = 8  # of the 10 that the image allows


def main() -> int:
    """Runs the check; returns its exit status."""
    address = f"http://127.0.0.1:{os.environ.get('CDC_METRICS_PORT', '9464')}{sys.argv[1]}"
    try:
        with urlopen(address, timeout=_SECONDS) as answer:
            print(answer.read().decode().strip())
    except OSError as error:  # also an answer of 503
        print(f"{address}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
