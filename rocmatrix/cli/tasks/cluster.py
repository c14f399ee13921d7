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
        "cards": "cards of each node (default: as many as this machine has)",
        "groups": "Kubernetes: numeric owners of /dev/kfd and the render nodes there, such as 44,992; or none",
        "user": "Kubernetes: who a pod runs as, uid:gid in numbers (default: the image's user, 10001:10001)",
        "under": "what runs the trainer on a node of Slurm: native (this checkout's Python), docker or apptainer",
        "image": "what the nodes call the cell's image: a tag, a digest, or Apptainer's file",
        "checkout": "native: where the nodes have this checkout (default: the path it has here)",
        "python": "native: the nodes' Python with the cell's wheels (default: the path it has here)",
        "rdma": "pass the nodes' RDMA adapters, and lift the limit of locked memory",
        "cpus": "processors of each node: Slurm's --cpus-per-task, a pod's request",
        "memory": "memory of each node: Slurm's --mem such as 64G, a pod's request such as 64Gi",
        "partition": "Slurm's partition",
        "time": "Slurm's time limit, such as 4:00:00; before it the job is saved and queued again",
        "account": "Slurm's account",
        "qos": "Slurm's quality of service",
        "reservation": "Slurm's reservation",
        "constraint": "Slurm's features of nodes, such as mi300x",
        "gres": "Slurm's generic resources in its own words, such as gpu:mi300x:8, in place of gpu:CARDS",
        "gpus_per_node": "Slurm's --gpus-per-node, such as mi300x:8, where a site asks for it in place of gres",
        "modules": "environment modules to load on the nodes, such as slurm,apptainer/1.3",
        "claim": "Kubernetes' PersistentVolumeClaim that takes the results",
        "data_claim": "Kubernetes' claim that holds --data, a path from its root (default: the claim of the results)",
        "namespace": "Kubernetes' namespace",
        "pull_secrets": "Kubernetes' secrets for the image's registry, by name",
        "node_selector": "labels that a Kubernetes node must have, such as gpu=mi300x,zone=a",
        "tolerations": "taints that a pod tolerates, such as amd.com/gpu:NoSchedule,a=b:NoExecute",
        "queue": "Kueue's local queue",
        "card_resource": "what the device plugin calls a card (default: amd.com/gpu), such as amd.com/cpx_nps4",
        "rdma_resource": "what the plugin of the adapters calls one, such as rdma/hca",
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
    user: str = "",
    under: str = "native",
    image: str = "",
    checkout: str = "",
    python: str = "",
    rdma: bool = False,
    cpus: int = 0,
    memory: str = "",
    partition: str = "",
    time: str = "",
    account: str = "",
    qos: str = "",
    reservation: str = "",
    constraint: str = "",
    gres: str = "",
    gpus_per_node: str = "",
    modules: str = "",
    claim: str = "",
    data_claim: str = "",
    namespace: str = "",
    pull_secrets: str = "",
    node_selector: str = "",
    tolerations: str = "",
    queue: str = "",
    card_resource: str = "",
    rdma_resource: str = "",
    explain: bool = False,
) -> None:
    """Train on several machines: hand the same job to Slurm or Kubernetes."""
    place = {name: value for name, value in locals().items() if name not in ("c", "wanted", "explain")}
    from rocmatrix.cli.commands import cluster

    cluster.submit(wanted, place=place, explain=explain)
