"""Models of matrix/hosts.yaml: drivers and kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, RangeText, Selector, Strict, Text, within

HOSTS_FILE = "matrix/hosts.yaml"


class DriverWindow(Strict):
    """Which ROCm user space a version of AMD's driver module serves."""

    module: RangeText
    package: Text
    user_space: RangeText
    evidence: Evidence


class Caution(Strict):
    """A range of kernels, or of driver modules, that is known to be bad for some cards.

    `unless` is a part of a kernel's name that exempts it; `origin` names whose driver the range is for.
    """

    id: RuleId
    when: Selector
    kernel: RangeText
    unless: Text | None = None
    origin: Literal["kernel", "dkms"]
    why: Text
    fix: Text
    evidence: Evidence


class HostKnowledge(Strict):
    """All of matrix/hosts.yaml."""

    drivers: list[DriverWindow] = Field(min_length=1)
    cautions: list[Caution]


def load(root: Path) -> HostKnowledge:
    """Read matrix/hosts.yaml of the checkout. Raises RM001 with every mistake and its line, RM002."""
    return matrix_file.part(root, HOSTS_FILE, HostKnowledge)


def plain_version(release: str | None) -> str | None:
    """Return the numbers a kernel or module release begins with: "6.8.0-63-generic" is 6.8.0."""
    import re

    match = re.match(r"\d{1,5}(\.\d{1,5}){1,3}", release or "")
    return match[0] if match else None


def is_within(release: str | None, bounds: str) -> bool:
    """Return whether a kernel or module release is in a range; one without numbers never does."""
    return within(plain_version(release), bounds)
