"""Paths of the files that come with the trainer.

Only this module finds files from its own place, so a module may move to another room without a change.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SOURCE_ROOT = PACKAGE.parent  # what PYTHONPATH needs so that a child process finds the same trainer
SAMPLE = PACKAGE / "data" / "sp500_vix_daily.csv"
ARCHITECTURES = PACKAGE / "device" / "architectures.json"
RECIPES = PACKAGE / "config" / "recipes"  # inside the package, so that an image has them, too
