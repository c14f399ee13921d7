"""The tasks that watch over the whole matrix."""

from invoke.context import Context

from rocmatrix.cli.options.records import Bisect, Nightly
from rocmatrix.cli.tasks.flags import command


@command(Nightly)
def nightly(c: Context, asked: Nightly) -> None:
    """Build, prove and smoke the matrix, move tags after smoke only, and say what regressed since the last good night.

    A night that was killed goes on where it was.
    """
    from rocmatrix.cli.commands import nightly
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    nightly.nightly(asked)


@command(Bisect)
def bisect(c: Context, asked: Bisect) -> None:
    """Find the versions between which a probe broke on a card: from records, then by building and smoking others."""
    from rocmatrix.cli.commands import bisect
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    bisect.bisect(asked)
