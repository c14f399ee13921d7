"""Verdicts of earlier runs: for this card, these versions, these shapes, this environment, and no others.

A file that cannot be read or is of another key counts for nothing, and one that cannot be written is not missed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from trainer.device.accelerator import Accelerator
from trainer.run.gates.child import Verdict
from trainer.run.gates.subject import Subject
from trainer.runtime.paths import PACKAGE
from trainer.storage.checkpoint_store import write_durably
from trainer.storage.untrusted_files import json_of

FOLDER = "trainer-gates"
# What torch and the libraries below it are set by.
DECIDING = (
    "ROCBLAS_",
    "HIPBLASLT_",
    "TORCH_",
    "PYTORCH_",
    "DISABLE_ADDMM_",
    "HSA_",
    "HIP_",
    "AMDGCN_",
    "GPU_",
    "CUBLAS_",
)
SOURCES = (
    "run/gates/trials.py",
    "run/gates/canary.py",
    "device/precision.py",
    "models/adapters/nf4.py",
    "models/adapters/lora.py",
    "models/fast/attention.py",
    "models/fast/proof.py",
)


def folder_of(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of verdicts: on the volume of caches in a container, below HOME elsewhere; None without one.

    Args:
        environment: variables; this process's unless given.
    """
    base = environment.get("XDG_CACHE_HOME") or (f"{home}/.cache" if (home := environment.get("HOME")) else None)
    return Path(base) / FOLDER if base else None


def key_of(gate: str, subject: Subject, accelerator: Accelerator, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides a verdict, as JSON's own types.

    Args:
        gate: name of the trial.
        how: how the child is run: settings and variables beyond this process's.
    """
    sources = hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in SOURCES)).hexdigest()
    return {
        "gate": gate,
        "subject": {**subject.facts(), "device": accelerator.kind},
        "card": [accelerator.name, accelerator.arch, accelerator.memory_bytes],
        "versions": [torch.__version__, torch.version.hip, torch.version.cuda, os.uname().release],
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(DECIDING)},
        "how": dict(how),
        "sources": sources,
    }


def read(key: Mapping[str, Any], folder: Path | None) -> Verdict | None:
    """Return the verdict that is kept under a key; None where there is none.

    Args:
        key: see `key_of`.
        folder: see `folder_of`.
    """
    if folder is None:
        return None
    try:
        content = json_of(_path(key, folder))
        if content["key"] != json.loads(json.dumps(key)):
            return None
        verdict = Verdict(**content["verdict"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    texts = all(isinstance(each, str) for each in (verdict.gate, verdict.status, verdict.why, verdict.cached))
    return verdict if texts and verdict.gate == key["gate"] and verdict.lasting else None


def write(keys: Mapping[str, Mapping[str, Any]], verdicts: Sequence[Verdict], folder: Path | None) -> None:
    """Keep the verdicts that would be the same again.

    Args:
        keys: by the gate's name, see `key_of`.
        verdicts: those of this run; one that was read from the cache is not written again.
        folder: see `folder_of`.
    """
    if folder is None:
        return
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    for each in verdicts:
        if each.lasting and not each.cached:
            kept = replace(each, cached=day)
            content = {"key": keys[each.gate], "verdict": {"gate": each.gate, **kept.facts()}}
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                write_durably(_path(keys[each.gate], folder), json.dumps(content).encode() + b"\n")


def _path(key: Mapping[str, Any], folder: Path) -> Path:
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
    return folder / f"{key['gate'].replace(' ', '-')}-{name}.json"
