"""The task that reads the log of a failure."""

from invoke.context import Context
from invoke.tasks import task


@task(
    auto_shortflags=False,
    help={
        "log": "a log, packed or not; - reads standard input",
        "cell": "rank for this cell",
        "gpu": "rank for this card, such as gfx1100 or 'RX 7900 XT' (default: this machine's)",
        "json": "print what was found as JSON, for programs",
        "share": "take names of users and hosts, homes, addresses and tokens out of what is printed",
    },
)
def diagnose(c: Context, log: str, cell: str = "", gpu: str = "", json: bool = False, share: bool = False) -> None:
    """Find the likely cause of a failure in its log: cause, remedy, source, and what to try next."""
    from rocmatrix.cli.commands import diagnose

    diagnose.diagnose(log, cell=cell, gpu=gpu, as_json=json, share=share)
