"""torchrun's command line, around what an emitter adds about nodes and their rendezvous."""

from __future__ import annotations

from collections.abc import Sequence

MODULE = ("-m", "torch.distributed.run")
# torchrun reads every word with argparse, which takes `--run=a` for a beginning of its own `--run-path`: what
# stands behind `--` is the program's alone.
TRAINER = ("-m", "--", "trainer")
# Ranks of one machine meet on the loopback; without --local-addr torchrun asks for the machine's own name, which
# a container without a network cannot look up.
ALONE = ("--standalone", "--local-addr=127.0.0.1")


def torchrun(*options: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return what Python is given to run the trainer with `arguments` in every process that torchrun starts."""
    return [*MODULE, *options, *TRAINER, *arguments]
