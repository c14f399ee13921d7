"""Kubernetes: a Job on one node, a TrainJob of Kubeflow Trainer on several; results and data are on claims."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rocmatrix.jobs.destination import IMAGE_USER, Destination, Submission
from rocmatrix.jobs.schedulers.scheduler import Nodes, Scheduler
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import comma_separated, option

if TYPE_CHECKING:
    from rocmatrix.containers.emit import kubernetes_manifest
    from rocmatrix.containers.emit.cluster.kubernetes_site import Site
    from rocmatrix.containers.runspec import RunSpec
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Job

LONGEST = 63  # of a label, which the names of jobs and pods are
_GROUPS = (
    "Say it: --groups with what `stat -c %g /dev/kfd /dev/dri/renderD*` prints there, or --groups none where the "
    "nodes' runtime gives devices to the pod's user (containerd: device_ownership_from_security_context)."
)


@dataclass(frozen=True, kw_only=True)
class KubernetesOptions(Nodes):
    """Options that only Kubernetes takes."""

    groups: str = option(
        "Kubernetes: group ids of /dev/kfd and of the render nodes on its machines, such as 44,992; or none",
        metavar="GID,...|none",
    )
    user: str = option("Kubernetes: user and group ids of a pod (default: the image's, 10001:10001)", metavar="UID:GID")
    claim: str = option("PersistentVolumeClaim for the results", metavar="CLAIM")
    data_claim: str = option(
        "PersistentVolumeClaim that holds --data, a path from its root (default: --claim)",
        metavar="CLAIM",
    )
    namespace: str = option("Kubernetes' namespace", metavar="NAME")
    pull_secrets: str = option("Kubernetes' image pull secrets, by name", metavar="NAME,...")
    node_selector: str = option(
        "labels that a Kubernetes node must have, such as gpu=mi300x,zone=a", metavar="LABEL=VALUE,..."
    )
    tolerations: str = option(
        "taints that a pod tolerates, such as amd.com/gpu:NoSchedule,a=b:NoExecute", metavar="TAINT,..."
    )
    queue: str = option("Kueue's local queue", metavar="NAME")
    card_resource: str = option(
        "resource name of a card in the device plugin, such as amd.com/cpx_nps4 (default: amd.com/gpu)",
        metavar="RESOURCE",
    )
    rdma_resource: str = option("resource name of an RDMA adapter in its plugin, such as rdma/hca", metavar="RESOURCE")


def _no_site() -> Site:
    from rocmatrix.containers.emit.cluster.kubernetes_site import Site

    return Site()


@dataclass(frozen=True, kw_only=True)
class KubernetesDestination(Destination):
    """A cluster of Kubernetes. `groups` own a node's devices, () where its runtime gives devices to the pod's user.

    `user` is who a pod runs as, "uid:gid" in numbers.
    """

    groups: tuple[int, ...] | None = None
    user: str = IMAGE_USER
    site: Site = field(default_factory=_no_site)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"\d+:\d+", self.user, re.ASCII):
            raise RocmatrixError("RM404", what=f"--user takes numbers such as 10001:10001, not {self.user!r}")

    def job(self, submission: Submission) -> Job:
        """Return the manifest and its `kubectl apply`. Raises RM422, RM423, RM424 and RM426."""
        return self.readable(_job(self, submission))


def _destination(options: KubernetesOptions) -> KubernetesDestination:
    from rocmatrix.containers.emit.cluster.kubernetes_site import CARD, Site

    selector = (word.partition("=") for word in comma_separated(options.node_selector))
    site = Site(
        pull_secrets=comma_separated(options.pull_secrets),
        node_selector={key: value for key, _, value in selector},
        tolerations=comma_separated(options.tolerations),
        cpu=str(options.cpus) if options.cpus else None,
        card=options.card_resource or CARD,
        rdma=options.rdma_resource or None,
        **options.named("claim", "data_claim", "namespace", "queue", "memory"),
    )
    groups = _group_numbers(options.groups)
    return KubernetesDestination(**options.about_nodes, **options.named("user"), groups=groups, site=site)


def _group_numbers(text: str) -> tuple[int, ...] | None:
    """Return group numbers; () for "none", None where nothing is named."""
    numbers = () if text == "none" else comma_separated(text)
    if not all(word.isascii() and word.isdecimal() for word in numbers):
        what = f"--groups takes numbers such as 44,992, not {text!r}: a name is another number on another machine"
        raise RocmatrixError("RM404", what=what)
    return tuple(map(int, numbers)) if text else None


SCHEDULER = Scheduler(name="kubernetes", options=KubernetesOptions, destination=_destination)


def _job(to: KubernetesDestination, submission: Submission) -> Job:
    from rocmatrix.containers.emit import kubernetes_manifest
    from rocmatrix.jobs.runner import Job

    job_request = submission.job_request
    _require_site(to, cards=submission.cards)
    on_claim = _on_claim(job_request)
    _require_adapters(to)
    spec = _spec(to, submission, on_claim)
    placement = kubernetes_manifest.Placement(
        name=_label(str(job_request.options["run"]), nodes=to.nodes),
        site=to.site,
        nodes=to.nodes,
        processes=to.ranks(submission.cards),
        cards=submission.cards,
    )
    emit = kubernetes_manifest.kubernetes_job if to.nodes == 1 else kubernetes_manifest.train_job
    path = job_request.output / f"{placement.name}.yaml"
    return Job(
        argv=["kubectl", "apply", f"--filename={_listed(path)}"],
        environment=None,
        why=_rows_of_pods(to, placement, spec=spec, data=on_claim),
        files={path: emit(spec, placement)},
        rows=kubernetes_manifest.kubernetes_rows(spec, placement),
    )


def _require_site(to: KubernetesDestination, *, cards: int) -> None:
    if to.site.claim is None:
        raise RocmatrixError("RM422", what="no claim is named for the results")
    if cards and to.groups is None:
        what = "who owns /dev/kfd and the render nodes on the cluster's nodes"
        raise RocmatrixError("RM423", what=f"no option states {what}", next=_GROUPS)


def _require_adapters(to: KubernetesDestination) -> None:
    if to.rdma and to.site.rdma is None:
        what = "--rdma on Kubernetes takes the name of the adapters' resource"
        raise RocmatrixError("RM424", what=what, next="Name it: --rdma-resource, as `kubectl describe node` lists it.")


def _spec(to: KubernetesDestination, submission: Submission, on_claim: str | None) -> RunSpec:
    from rocmatrix.containers import least_privilege
    from rocmatrix.containers.portable_spec import Places
    from rocmatrix.jobs import cluster, input_mounts

    target = f"{least_privilege.DATA_FOLDER}/{PurePosixPath(on_claim).name}" if on_claim else None
    own = submission.job_request.options
    inputs = tuple(input_mounts.mounts(own, on_claim=True))
    places = Places(results=least_privilege.RUN_FOLDER, data=on_claim, data_target=target, inputs=inputs)
    options = {**own, "output": least_privilege.RUN_FOLDER, "data": target, **input_mounts.inside(own)}
    command = cluster.command(submission, options)
    return cluster.spec(to, submission.cell, places=places, command=command, user=to.user, groups=to.groups or ())


def _rows_of_pods(
    to: KubernetesDestination, placement: kubernetes_manifest.Placement, *, spec: RunSpec, data: str | None
) -> str:
    kind = "Job" if to.nodes == 1 else "TrainJob (Kubeflow Trainer)"
    text = f"kubernetes: a {kind} on {to.nodes} node(s) of {placement.processes} process(es); image {spec.image}"
    if to.image is None:
        text += ", a tag of this machine's engine: nodes that cannot pull it need --image"
    return text + (f"; data: {data} on claim {to.site.data_claim or to.site.claim}" if data else "")


def _on_claim(job_request: JobRequest) -> str | None:
    """Return the data's path on its claim, relative to the claim's root. Raises RM426 for a file of this machine."""
    from rocmatrix.jobs import callback_mounts, input_mounts, job

    recipe = job.recipe_file(job_request)
    named = str(job_request.options.get("data") or "")
    path = PurePosixPath(named)
    if recipe is not None:
        raise RocmatrixError("RM426", what=f"--recipe names {recipe}", next="Say its settings with --set.")
    if code := callback_mounts.files(job.callbacks(job_request)):
        advice = "Put the class into a module of the image, and give --callback module:Class."
        raise RocmatrixError("RM426", what=f"--callback names {code[0]}", next=advice)
    for flag, other in {"data": named, **input_mounts.named(job_request.options)}.items():
        parts = PurePosixPath(other)
        if other and (parts.is_absolute() or ".." in parts.parts or not parts.name):
            raise RocmatrixError("RM426", what=f"--{flag} names {other}")
    return str(path) if named else None


def _listed(path: Path) -> str:
    """Return a path as kubectl takes one: its option holds a list in CSV, in which a comma ends a path."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([path])
    return line.getvalue().removesuffix("\n")


def _label(name: str, *, nodes: int) -> str:
    """Return a run's name as Kubernetes takes one: small letters, digits and dashes, a letter first.

    A name that loses letters ends with a digest of the whole, or two runs would be one job.

    Args:
        nodes: a JobSet adds a pod's place to the name, and refuses what is longer than a label then.
    """
    room = LONGEST if nodes == 1 else LONGEST - len(f"-node-0-{nodes - 1}-abcde")
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"run-{plain}"
    if len(plain) > room or re.search(r"[^\w.-]", name, re.ASCII):
        digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:6]
        plain = f"{plain[: room - len(digest) - 1].rstrip('-')}-{digest}"
    return plain.rstrip("-")
