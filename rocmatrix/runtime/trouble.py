"""Failures of the host that ended a job or a build, which is then no evidence on the cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["engine", "registry", "disk", "signal"]


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """The stage at which the host failed, and what is known of it."""

    stage: Stage
    detail: str
