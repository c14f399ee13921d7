"""A run spec for a cluster with Kubernetes: a Job for one node, a Kubeflow Trainer TrainJob for several.

A pod takes its cards from AMD's device plugin, which chooses them, by their count; results and data are on claims.
Nothing of the submitting machine is in the file. Sources of the fields: Kubernetes' API reference
(batch/v1, core/v1) and the API of Kubeflow Trainer 2.3 (trainer.kubeflow.org/v1alpha1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rocmatrix.containers import settings
from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.cluster.pod import Pod, fields_of, literal, pod_of
from rocmatrix.containers.emit.torchrun import ALONE, torchrun
from rocmatrix.containers.emit.yaml_text import yaml_text
from rocmatrix.containers.runspec import Explanation, RunSpec

RUNTIME = "torch-distributed"  # a ClusterTrainingRuntime that comes with Kubeflow Trainer; its image is replaced
MANAGER = "rocmatrix.org/submit"
USERS_MISTAKE = 2  # the trainer's exit status for what a person has to put right
RETRIES = 3
GRACE_SECONDS = 120  # to write a checkpoint after SIGTERM
LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")

HEAD = """\
# Made by `./invokew submit`: user, groups and sizes are numbers, for the image knows no names.
# Three things of this run have no field in a pod: a process that collects dead children, no execution below
# /tmp, and a cache that outlives it.
"""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Placement of a run. `site.claim` is a PersistentVolumeClaim that every node can write; it takes the results.

    `processes` and `cards` are each node's: ranks, and what the device plugin is asked for. A site without a
    namespace means the one that kubectl is set to.
    """

    name: str
    site: Site
    nodes: int = 1
    processes: int = 1
    cards: int = 0

    def __post_init__(self) -> None:
        if self.site.claim is None:
            raise ValueError("a pod's results need a claim")
        if not LABEL.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no RFC 1035 label, which the name of a job has to be")
        if self.nodes < 1 or self.processes < 1:
            raise ValueError("a run has one node and one process at least")

    @property
    def metadata(self) -> dict[str, Any]:
        """Name, labels and namespace."""
        labels = {"app.kubernetes.io/managed-by": "rocmatrix", **self.site.labels}
        about: dict[str, Any] = {"name": self.name, "labels": labels}
        return about | ({"namespace": self.site.namespace} if self.site.namespace else {})

    @property
    def resources(self) -> dict[str, Any]:
        """What each pod requests."""
        return self.site.resources(self.cards)


def kubernetes_job(spec: RunSpec, placement: Placement) -> str:
    """Return a batch/v1 Job on one node, as YAML; with several processes torchrun starts them.

    Raises ValueError for a portable spec, for several nodes, and for a setting that no pod can have.
    """
    if placement.nodes != 1:
        raise ValueError("a Job is for one node; several nodes are a TrainJob")
    pod = pod_of(spec, placement.site)
    words = ["python", *torchrun(*ALONE, f"--nproc-per-node={placement.processes}")]
    container = {
        "name": "train",
        "image": spec.image,
        **({"command": words} if placement.processes > 1 else {}),
        "args": [literal(word) for word in spec.command],
        **pod.container,
        **({"resources": placement.resources} if placement.resources else {}),
    }
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": placement.metadata,
        "spec": {
            "backoffLimit": RETRIES,
            "podFailurePolicy": {"rules": _failure_rules("train")},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/managed-by": "rocmatrix"}},
                "spec": {
                    "restartPolicy": "Never",  # podFailurePolicy asks for it; a new pod may land on another node
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    **pod.spec,
                    "containers": [container],
                },
            },
        },
    }
    return HEAD + yaml_text(document)


def train_job(spec: RunSpec, placement: Placement) -> str:
    """Return a TrainJob on `placement.nodes` nodes, as YAML.

    Its controller hands torchrun the number of nodes, this node's rank and the address of the first one in
    PET_* variables. Raises ValueError for a portable spec and for a setting that no pod can have.
    """
    pod = pod_of(spec, placement.site)
    if "hostIPC" in pod.spec:
        raise ValueError("a TrainJob cannot be given --ipc=host: no patch of its runtime may set it")
    environment = pod.container.pop("env", [])
    document = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": placement.metadata,
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": RUNTIME},
            "trainer": {
                "image": spec.image,
                "command": ["python", *torchrun()],
                "args": [literal(word) for word in spec.command],
                "env": environment,
                "numNodes": placement.nodes,
                "numProcPerNode": placement.processes,
                **({"resourcesPerNode": placement.resources} if placement.resources else {}),
            },
            "runtimePatches": [{"manager": MANAGER, "trainingRuntimeSpec": _runtime_patch(pod)}],
        },
    }
    return HEAD + yaml_text(document)


def _runtime_patch(pod: Pod) -> dict[str, Any]:
    """Return the part of a ClusterTrainingRuntime that `pod` replaces: the template of its replicated job `node`."""
    template = {
        "spec": {
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            **pod.spec,
            "containers": [{"name": "node", **pod.container}],
        }
    }
    job = {"name": "node", "template": {"spec": {"template": template}}}
    return {"template": {"spec": {"replicatedJobs": [job]}}}


def kubernetes_rows(spec: RunSpec, placement: Placement) -> tuple[Explanation, ...]:
    """Return a pod's settings, field by field, each with the reason and source of its setting.

    A row without a value is a setting without a field: it is up to the cluster.
    """
    return (*(row for setting in spec.settings for row in _rows(setting, placement)), *_resource_rows(placement))


def _resource_rows(placement: Placement) -> Iterator[Explanation]:
    reasons = {
        placement.site.card: (
            "cards by count: AMD's device plugin chooses them and passes their nodes",
            "ROCm/k8s-device-plugin",
        ),
        placement.site.rdma: (
            "--rdma-resource: the plugin of the adapters passes one; the limit of locked memory is "
            "the node's container runtime's",
            "Linux, infiniband/user_verbs.rst",
        ),
    }
    for kind, amounts in placement.resources.items():
        for name, amount in amounts.items():
            reason, source = reasons.get(name, ("asked for by hand", "the command line"))
            yield Explanation(flag=f"container.resources.{kind}.{name}", value=amount, reason=reason, source=source)
    for name, value in placement.site.pod.items():
        about = json.dumps(value)
        yield Explanation(flag=f"pod.{name}", value=about, reason="asked for by hand", source="the command line")


def _rows(setting: settings.Setting, placement: Placement) -> Iterator[Explanation]:
    for name, value in list(_fields(fields_of(setting, placement.site))) or [(setting.flag, None)]:
        yield Explanation(flag=name, value=value, reason=setting.reason, source=setting.source)


def _fields(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, str | None]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{above}{key}.")
        else:
            yield above + key, json.dumps(value)


def _failure_rules(container: str) -> Sequence[dict[str, Any]]:
    """Try again after an eviction, uncounted; never after a mistake that only a person can put right."""
    mistake = {"containerName": container, "operator": "In", "values": [USERS_MISTAKE]}
    return [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": mistake},
    ]
