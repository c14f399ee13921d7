"""Tasks that send jobs to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import JobTask

if TYPE_CHECKING:
    from rocmatrix.jobs.job import Wanted


class TrainingTask(JobTask):
    """A task of another name that takes the options of `train`, but for those of one machine."""

    command = "train"
    shared = ("rocm", "torch", "gpu", "cell", "python", "companions", "dry_run", "force")


@task(
    klass=TrainingTask,
    auto_shortflags=False,
    help={
        "engine": "slurm or kubernetes",
        "nodes": "machines (default: 1)",
        "processes": "ranks on each node (default: one for each card, or 1)",
        "cards": "cards of each node, where this machine is not like the nodes",
        "groups": "numeric owners of /dev/kfd and the render nodes there, such as 44,992",
        "under": "what runs the trainer on a node of Slurm: native (this checkout's Python), docker or apptainer",
        "image": "what the nodes call the cell's image: a tag, a digest, or Apptainer's file",
        "partition": "Slurm's partition",
        "time": "Slurm's time limit, such as 4:00:00; before it the job is saved and queued again",
        "claim": "Kubernetes' PersistentVolumeClaim that takes the results",
        "namespace": "Kubernetes' namespace",
        "explain": "send nothing; print each setting of the container with its reason and source",
    },
)
def submit(
    c: Context,
    wanted: Wanted,
    engine: str = "",
    nodes: int = 1,
    processes: int = 0,
    cards: int = 0,
    groups: str = "",
    under: str = "native",
    image: str = "",
    partition: str = "",
    time: str = "",
    claim: str = "",
    namespace: str = "",
    explain: bool = False,
) -> None:
    """Train on several machines: hand the same job to Slurm or Kubernetes."""
    from rocmatrix.cli.commands import cluster

    cluster.submit(
        wanted,
        engine=engine,
        nodes=nodes,
        processes=processes or None,
        cards=cards or None,
        groups=groups,
        explain=explain,
        under=under,
        image=image or None,
        partition=partition or None,
        time_limit=time or None,
        claim=claim or None,
        namespace=namespace or None,
    )
