"""`python -m trainer`."""

import os
import signal
import sys

from trainer.cli import main
from trainer.runtime.closed_streams import open_closed_streams
from trainer.runtime.leaving import leave
from trainer.runtime.signals import ending_signals, interrupt, interrupt_once

if __name__ == "__main__":
    open_closed_streams()
    if (
        sys.flags.safe_path
    ):  # -P is not passed on: no file of the run folder is taken for a module by its children either
        os.environ["PYTHONSAFEPATH"] = "1"
    # As process 1 of a container Python would ignore SIGTERM; this way a stop cleans up like Ctrl-C.
    for number in ending_signals():
        signal.signal(number, interrupt_once)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell's `&` had it ignored
        signal.signal(signal.SIGINT, interrupt)
    leave(main())
