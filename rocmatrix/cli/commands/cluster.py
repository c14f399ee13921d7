"""Commands that hand a job to the scheduler of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands import common, run
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.containers.emit.cluster.kubernetes_site import Site
    from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
    from rocmatrix.jobs.destination import Destination
    from rocmatrix.jobs.job import Wanted


@edge
def submit(wanted: Wanted, *, place: Mapping[str, Any], explain: bool) -> None:
    """Send a job to Slurm or Kubernetes, and print what that answered: the job's number or name.

    `place` are the task's options. With `explain`, nothing is sent: each setting of the job's container is printed
    with its reason and source.
    """
    from rocmatrix.jobs import cluster as submitting
    from rocmatrix.jobs import runner as launch

    to = destination(place)
    matrix, hardware = common.known_matrix(), common.hardware_here()
    choice = common.choose(matrix, wanted.request, hardware, force=wanted.force)
    job = submitting.prepare(wanted, to, matrix=matrix, cell=choice.cell, hardware=hardware)
    say(job.why)
    if explain:
        run.print_rows(job.rows)
        return
    print(job.words if wanted.dry_run else launch.send(job))


def destination(place: Mapping[str, Any]) -> Destination:
    """Return where a job goes, from options as typed: empty means not said, lists have commas between.

    Raises RM404 for what no option takes.
    """
    from rocmatrix.jobs.destination import IMAGE_USER, Destination

    said = {name: value for name, value in place.items() if value not in ("", 0)}
    try:
        slurm, site = _slurm(said), _site(said)
    except ValueError as error:
        raise RocmatrixError("RM404", what=str(error)) from error
    names = ("nodes", "processes", "cards", "under", "image", "checkout", "python", "rdma")
    about = {name: said[name] for name in names if name in said}
    groups = _groups(place["groups"])
    user = said.get("user", IMAGE_USER)
    return Destination(engine=place["engine"], groups=groups, user=user, slurm=slurm, site=site, **about)


def _slurm(said: Mapping[str, Any]) -> SlurmRequest:
    from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest

    names = ("partition", "account", "qos", "reservation", "constraint", "cpus", "gres", "gpus_per_node")
    about = {name: said[name] for name in names if name in said}
    about |= {"memory": said["memory"]} if said["engine"] == "slurm" and "memory" in said else {}
    return SlurmRequest(time_limit=said.get("time"), modules=_words(said.get("modules")), **about)


def _site(said: Mapping[str, Any]) -> Site:
    from rocmatrix.containers.emit.cluster.kubernetes_site import CARD, Site

    names = ("claim", "data_claim", "namespace", "queue", "memory")
    selector = (word.partition("=") for word in _words(said.get("node_selector")))
    return Site(
        pull_secrets=_words(said.get("pull_secrets")),
        node_selector={key: value for key, _, value in selector},
        tolerations=_words(said.get("tolerations")),
        cpu=str(said["cpus"]) if "cpus" in said else None,
        card=said.get("card_resource", CARD),
        rdma=said.get("rdma_resource"),
        **({name: said[name] for name in names if name in said} if said["engine"] == "kubernetes" else {}),
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _groups(text: str) -> tuple[int, ...] | None:
    """Return group numbers; () for "none", None where nothing is said."""
    words = () if text == "none" else _words(text)
    if not all(word.isascii() and word.isdecimal() for word in words):
        what = f"--groups takes numbers such as 44,992, not {text!r}: a name is another number on another machine"
        raise RocmatrixError("RM404", what=what)
    return tuple(map(int, words)) if text else None
