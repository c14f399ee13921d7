"""The task that looks into images."""

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import EVIDENCE, REQUEST, FlagTask


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        "cell": REQUEST["cell"],
        "companions": "the packages that were added to it, as for `build`",
        "image": "another image than the cell's own",
        "tree": "a folder in place of an image: its device code alone is looked into",
        "only": "with --tree: the kernel libraries that must be there, such as rocBLAS,hipBLASLt",
        "wheelhouse": "another folder of the locked wheels, which the installed files are compared with",
        "accept-size": "the reason to take the image's size as it is; later images are compared with it",
        "evidence": EVIDENCE,
        "json": "print the proof as JSON, for programs",
    },
)
def prove(
    c: Context,
    cell: str = "",
    companions: str = "",
    image: str = "",
    tree: str = "",
    only: str = "",
    wheelhouse: str = "",
    accept_size: str = "",
    json: bool = False,
    evidence: str = "",
) -> None:
    """Compare what an image really holds with its cell: every file by its bytes, and device code. Needs no card."""
    from rocmatrix.cli.commands import prove
    from rocmatrix.evidence import recorder as keeping

    keeping.use(evidence)
    prove.prove(
        cell=cell,
        companions=companions,
        image=image,
        tree=tree,
        only=only,
        as_json=json,
        wheelhouse=wheelhouse,
        accept_size=accept_size,
    )
