"""torchrun as `train --ranks N` starts it: its arguments, without its own traceback at a stop or a rank's failure.

A rank has reported what went wrong, or the launcher does; where neither can, as for a rank that was killed, one line
per rank states how it ended.
"""

from __future__ import annotations

import logging
import signal

from trainer.runtime.events import say
from trainer.runtime.leaving import leave


def main() -> int:
    """Run torchrun; return 0, 1 where ranks failed in every attempt, 128 + N where signal N ended it."""
    try:
        from torch.distributed import run
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    except KeyboardInterrupt:  # of all processes of a terminal, while torch is imported
        return 128 + signal.SIGINT
    logging.raiseExceptions = False  # a signal during a line of its log is no error of logging
    try:
        run.main()
    except (SignalException, KeyboardInterrupt) as stop:
        return 128 + int(getattr(stop, "sigval", signal.SIGINT))
    except ChildFailedError as failed:
        for rank, failure in sorted(failed.failures.items()):
            say(f"rank {rank}  {ending(failure.exitcode)}")
        return 1
    return 0


def ending(status: int) -> str:
    """Return how a rank ended as a person reads it.

    Args:
        status: as subprocess gives it: -N for signal N.
    """
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal has no name
        return f"was ended by signal {-status}"


if __name__ == "__main__":
    leave(main())
