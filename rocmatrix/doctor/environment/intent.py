"""Whether a file means an AMD card, by what it names."""

from __future__ import annotations

import re
from pathlib import Path

from rocmatrix.doctor.environment.lint_input import Subject

_NAMED = re.compile(r"(?<![a-z])(?:rocm\d*|amd(?!64)|radeon|gfx\d{3,4})(?![a-z])", re.IGNORECASE)
_IMAGE = re.compile(r"rocm|(?<![a-z])amd(?!64)|gfx\d", re.IGNORECASE)
_VARIABLES = ("HSA_", "ROCR_", "HIP_", "PYTORCH_ROCM", "PYTORCH_HIP", "MIOPEN_", "ROCM_VERSION", "AMDGPU_FAMILY")
_INDEX = re.compile(
    r"/whl/(?:test/|nightly/)?rocm\d|repo\.radeon\.com/rocm|repo\.amd\.com/rocm|\+rocm\d|rocm\.\w+\.amd\.com"
)
_PART = re.compile(r" (?:stage|service|container|job) |(?<=\.toml) ")
_OF_MANY = (" service ", " container ", " job ")  # a file of several, of which not all need a card


def means_amd(subject: Subject) -> bool:
    """Return whether a subject is to run on an AMD card, as far as the file itself states it."""
    if subject.for_amd or (subject.launch is not None and subject.launch.for_amd):
        return True
    if subject.image is not None and _IMAGE.search(subject.image):
        return True
    named = any(row.name.startswith(_VARIABLES) for row in subject.variables)
    return named or file_is_for_amd(subject) or any(_INDEX.search(command.text) for command in subject.commands)


def file_is_for_amd(subject: Subject) -> bool:
    """Return whether the name of a subject's file states it; not of a file of several services, containers or jobs."""
    return not any(part in subject.name for part in _OF_MANY) and named_for_amd(subject)


def named_for_amd(subject: Subject) -> bool:
    """Return whether the name of a subject's file states an AMD card, whatever the file holds besides."""
    return bool(_NAMED.search(file_name(subject)))


def file_name(subject: Subject) -> str:
    """Return the name of a subject's file, without its folder."""
    return Path(_PART.split(subject.name)[0]).name
