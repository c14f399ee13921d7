"""`python -m trainer`."""

import os
import signal
import sys

from trainer.cli import main

if __name__ == "__main__":
    os.environ["PYTHONSAFEPATH"] = "1"  # as -P, for its children: no file of the run folder is taken for a module
    # As process 1 of a container Python would ignore SIGTERM; this way a stop cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
