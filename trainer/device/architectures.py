"""AMD's architectures: `architectures.json`, which `./invokew render` writes of matrix/architectures.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainer.runtime.paths import ARCHITECTURES


def _read() -> Mapping[str, Mapping[str, Any]]:
    rows = json.loads(ARCHITECTURES.read_text(encoding="utf-8"))
    return {row["name"]: row for row in rows}


KNOWN = _read()  # by name: autocast (format, why) or None; per_clock by number format or None; peaks of cards
