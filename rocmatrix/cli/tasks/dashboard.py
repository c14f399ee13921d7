"""The task that writes the evidence as pages."""

from invoke.context import Context

from rocmatrix.cli.options.records import Dashboard
from rocmatrix.cli.tasks.flags import command


@command(Dashboard)
def dashboard(c: Context, asked: Dashboard) -> None:
    """Write levels, probes, numbers over time and logs of every cell as pages that work offline."""
    from rocmatrix.cli.commands import dashboard
    from rocmatrix.evidence import recorder

    recorder.use(asked.evidence)
    dashboard.dashboard(asked)
