"""`python -m trainer`."""

import _signal  # type: ignore[import-not-found]  # of C: what `signal` imports could be interrupted

STOPPABLE = __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if STOPPABLE:  # Ctrl-C while what follows is imported has no traceback; a shell's `&` has it ignored
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})  # `./invokew` has it blocked while Python starts

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
    if STOPPABLE:
        signal.signal(signal.SIGINT, interrupt)
    leave(main())
