"""Helpers of all emitters: join the parts of a description, and refuse to run a portable spec here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rocmatrix.containers.runspec import RunSpec


def refuse_portable(spec: RunSpec) -> None:
    """Raise ValueError for a portable spec: a command needs values where it has variables."""
    if spec.portable:
        raise ValueError(f"the portable spec of {spec.cell} has compose variables where a command needs values")


def merged(first: dict[str, Any], parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Join parts into one mapping: lists grow, mappings are joined alike, anything else may come only once."""
    joined = first
    for part in parts:
        for key, value in part.items():
            if key not in joined:
                joined[key] = value
            elif isinstance(value, list):
                joined[key] = [*joined[key], *value]
            elif isinstance(value, dict):
                joined[key] = merged(dict(joined[key]), [value])
            else:
                raise ValueError(f"{key} is set twice")
    return joined
