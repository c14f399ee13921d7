"""The task that looks into images."""

from invoke.context import Context

from rocmatrix.cli.options.records import Prove
from rocmatrix.cli.tasks.flags import command


@command(Prove)
def prove(c: Context, asked: Prove) -> None:
    """Compare what an image really holds with its cell: every file by its bytes, and device code. Needs no card."""
    from rocmatrix.cli.commands import prove
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    prove.prove(asked)
