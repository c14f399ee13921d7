"""Tasks that run anything in a cell's image, and make a place to work in."""

import sys

from invoke.context import Context

from rocmatrix.cli.options.run import Devcontainer, Run
from rocmatrix.cli.tasks.flags import command


@command(Run)
def run(c: Context, asked: Run) -> None:
    """Run a command, or a shell, in a cell's image: the right mounts and devices, the least rights; or explain them."""
    from rocmatrix.cli.commands import run

    run.run(asked, after_dashes=_after_dashes(sys.argv))


@command(Devcontainer)
def devcontainer(c: Context, asked: Devcontainer) -> None:
    """Write .devcontainer/: the cell's image as a place to work in, with the card, for your own user."""
    from rocmatrix.cli.commands import run

    run.devcontainer(asked)


def _after_dashes(argv: list[str]) -> list[str]:
    """Return what stands after `--`, word by word; invoke joins the words, and with them what was quoted."""
    return argv[argv.index("--") + 1 :] if "--" in argv else []
