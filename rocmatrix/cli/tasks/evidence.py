"""The task that shows and exchanges evidence."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import EVIDENCE, FlagTask


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        "cell": "one cell, with its records",
        "json": "print levels and records as JSON, for programs",
        "export": "write the records to this file as JSON, to send them",
        "take": "take in the records of such a file; each is checked, and taken once",
        "sizes": "print entries for matrix/baselines.yaml: sizes of proven images that it does not have",
        "evidence": EVIDENCE,
    },
)
def evidence(
    c: Context,
    cell: str = "",
    json: bool = False,
    export: str = "",
    take: str = "",
    sizes: bool = False,
    evidence: str = "",
) -> None:
    """Show how far each cell is supported on which card, as computed from its records."""
    from rocmatrix.cli.commands import evidence as command

    command.evidence(cell=cell, as_json=json, export=export, take=take, sizes=sizes, file=evidence)
