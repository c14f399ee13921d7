"""The task that shows and exchanges evidence."""

from invoke.context import Context

from rocmatrix.cli.options.records import Evidence
from rocmatrix.cli.tasks.flags import command


@command(Evidence)
def evidence(c: Context, asked: Evidence) -> None:
    """Show how far each cell is supported on which card, as computed from its records."""
    from rocmatrix.cli.commands import evidence

    evidence.evidence(asked)
