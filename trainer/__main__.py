"""`python -m trainer`."""

import signal
import sys

from trainer.cli import main

if __name__ == "__main__":
    # As process 1 of a container Python would ignore SIGTERM; this way a stop cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
