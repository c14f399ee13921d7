"""The task that shows what there is, within two minutes."""

from invoke.context import Context

from rocmatrix.cli.options.demo import Demo
from rocmatrix.cli.tasks.flags import command


@command(Demo)
def demo(c: Context, asked: Demo) -> None:
    """Train, report, explain a card and diagnose a log: one page links the results. Natively, in two minutes."""
    from rocmatrix.cli.commands import demo

    demo.demo(asked)
