"""The task that reads the log of a failure."""

from invoke.context import Context

from rocmatrix.cli.options.host import Diagnose
from rocmatrix.cli.tasks.flags import command


@command(Diagnose)
def diagnose(c: Context, asked: Diagnose) -> None:
    """Find the likely cause of a failure in its log: cause, remedy, source, and what to try next."""
    from rocmatrix.cli.commands import diagnose

    diagnose.diagnose(asked)
