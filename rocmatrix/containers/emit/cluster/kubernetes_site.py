"""Kubernetes settings of a site: where pods may be scheduled, and what they request.

Sources of the fields: Kubernetes' API reference (core/v1), Kueue's labels, AMD's device plugin (its resource names).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CARD = "amd.com/gpu"
QUEUE = "kueue.x-k8s.io/queue-name"
QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]i?|Ki)?")
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
QUALIFIED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
TOLERATION = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^=:]*))?(:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings of a site's pods. `claim` takes the results; `data_claim` holds the data (None: the same claim).

    `cpu` and `memory` are each pod's requests and limits, in Kubernetes' quantities; `card` and `rdma` are names of
    resources, of which a pod takes as many as it has cards, and one; a toleration is `key[=value][:effect]`.
    """

    claim: str | None = None
    data_claim: str | None = None
    namespace: str | None = None
    pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[str, ...] = ()
    queue: str | None = None
    cpu: str | None = None
    memory: str | None = None
    card: str = CARD
    rdma: str | None = None

    def __post_init__(self) -> None:
        names = (self.claim, self.data_claim, self.namespace, self.queue, *self.pull_secrets)
        _check(NAME, "a name of Kubernetes", *names)
        _check(QUANTITY, "a quantity such as 8 or 64Gi", self.cpu, self.memory)
        _check(QUALIFIED, "a name such as amd.com/gpu", self.card, self.rdma, *self.node_selector)
        _check(VALUE, "a label's value", *self.node_selector.values())
        _check(TOLERATION, "a toleration such as amd.com/gpu=yes:NoSchedule", *self.tolerations)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job: Kueue's, which holds the job until its queue admits it."""
        return {QUEUE: self.queue} if self.queue else {}

    @property
    def pod(self) -> dict[str, Any]:
        """Fields of the pod that decide on which nodes it may run and with what secret its image is pulled."""
        about: dict[str, Any] = {}
        if self.pull_secrets:
            about["imagePullSecrets"] = [{"name": name} for name in self.pull_secrets]
        if self.node_selector:
            about["nodeSelector"] = dict(self.node_selector)
        if self.tolerations:
            about["tolerations"] = [_toleration(text) for text in self.tolerations]
        return about

    def resources(self, cards: int) -> dict[str, Any]:
        """Return requests and limits. Devices are limits, which are requests as well.

        A namespace whose quota counts limits refuses a pod without them (ResourceQuota, limits.cpu and limits.memory).
        """
        requests = {name: text for name, text in (("cpu", self.cpu), ("memory", self.memory)) if text}
        devices = ({self.card: str(cards)} if cards else {}) | ({self.rdma: "1"} if self.rdma else {})
        parts = {"requests": requests, "limits": requests | devices}
        return {name: part for name, part in parts.items() if part}


def _toleration(text: str) -> dict[str, str]:
    found = TOLERATION.fullmatch(text)
    assert found is not None
    about = {"key": found["key"]}
    about |= {"operator": "Exists"} if found["value"] is None else {"operator": "Equal", "value": found["value"]}
    return about | ({"effect": found["effect"]} if found["effect"] else {})


def _check(pattern: re.Pattern[str], kind: str, *words: str | None) -> None:
    for word in words:
        if word is not None and not pattern.fullmatch(word):
            raise ValueError(f"{word!r} is not {kind}")
