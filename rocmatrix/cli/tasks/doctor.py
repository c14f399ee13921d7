"""Tasks that look at a host and at what would run on it, and change nothing."""

from invoke.context import Context

from rocmatrix.cli.options.host import Doctor, Topology
from rocmatrix.cli.tasks.flags import command


@command(Doctor)
def doctor(c: Context, asked: Doctor) -> None:
    """Examine the host and its environment: what was seen, why it matters, and what fixes it."""
    from rocmatrix.cli.commands import doctor

    doctor.doctor(asked)


@command(Topology)
def topology(c: Context, asked: Topology) -> None:
    """Draw cards, the links between them, and NUMA nodes."""
    from rocmatrix.cli.commands import doctor

    doctor.topology(asked)
