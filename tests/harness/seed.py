"""The seed of the random tests: a fixed one, so that a failure of `make test` is caused by the change, and repeatable.

`make test-long` looks for new faults with another seed each time, which it prints.
"""

import os

SEED = int(os.environ.get("CDC_SEED", "20261125"))
