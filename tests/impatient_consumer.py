"""cdc-consumer on a follower that ends silent connections after 3 s: ``python -m tests.impatient_consumer PROFILE``."""

import sys

from cdc.consumer import __main__ as program
from cdc.consumer import session

if __name__ == "__main__":
    session._SILENT_SECONDS = 3
    sys.exit(program.main())
