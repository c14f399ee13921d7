"""The task that writes the evidence as pages."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import EVIDENCE, FlagTask


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        "out": "the folder to write; an earlier dashboard there is replaced",
        "serve": "show it on this machine's loopback address until Ctrl-C",
        "port": "the port to show it on (0: a free one)",
        "evidence": EVIDENCE,
    },
)
def dashboard(c: Context, out: str = "DASHBOARD", serve: bool = False, port: int = 8765, evidence: str = "") -> None:
    """Write levels, probes, numbers over time and logs of every cell as pages that work offline."""
    from rocmatrix.cli.commands import dashboard as command
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    command.dashboard(out=out, serve=serve, port=port)
