"""Paths of the checkout and of the files that come with this package.

Only this module finds files from its own place, so a module may move to another room without a change. The one
exception is the script that `invokew` starts: it runs before anything can be imported.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
TEMPLATES = ROOT / "templates"
# What `render` asked the trainer for: the two programs share no imports.
TRAINER_OPTIONS = PACKAGE / "runtime" / "trainer" / "options.json"
TRAINER_ERRORS = PACKAGE / "runtime" / "trainer" / "errors.json"
TRAINER_PROBES = PACKAGE / "runtime" / "trainer" / "probes.json"
# What `render` writes of matrix/architectures.yaml, for the host and for the trainer.
PROCESSORS_TABLE = PACKAGE / "host" / "processors.json"
TRAINER_ARCHITECTURES = ROOT / "trainer" / "device" / "architectures.json"
# Runs in an image, with its Python.
RECOMPILE = PACKAGE / "verify" / "files" / "recompile.py"
SIGNATURES = PACKAGE / "diagnosis" / "signatures"
COMPARISONS = PACKAGE / "diagnosis" / "comparisons" / "comparisons.yaml"
TRACKERS = PACKAGE / "diagnosis" / "upstream" / "trackers.yaml"
# What `lint` compares prose with.
STYLE = ROOT / "docs" / "style.md"
