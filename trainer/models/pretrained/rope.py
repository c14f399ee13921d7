"""Rotary embeddings of config.json, as the configuration classes of transformers 5.23 read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trainer.models.decoder.config import RopeConfig
from trainer.models.pretrained.refusals import not_built_in, unsupported
from trainer.runtime.errors import TrainerError

Raw = Mapping[str, Any]
KINDS = ("default", "linear", "llama3", "yarn")
BY_OWN_CLASS = ("dynamic", "longrope", "proportional")  # what transformers 5.23 computes, too


def rope_config(raw: Raw) -> RopeConfig:
    """Return the rotary embedding of config.json, in its old form (rope_theta, rope_scaling) or its new one.

    Raises:
        TrainerError: RM707 for a scaling that is not implemented, or is not whole.
    """
    given = _rope_given(raw)
    kind = _kind(raw, given)
    length = given.get("original_max_position_embeddings") or raw.get("original_max_position_embeddings")
    length = length or raw.get("max_position_embeddings") or 2048
    factor = given.get("factor") or raw.get("max_position_embeddings", length) / length
    return RopeConfig(
        theta=_theta(given.get("rope_theta"), raw.get("rope_theta")),
        kind=kind,
        factor=float(factor),
        low_freq_factor=float(given.get("low_freq_factor", 1.0)),
        high_freq_factor=float(given.get("high_freq_factor", 4.0)),
        original_length=int(length),
        attention_factor=_attention_factor(given, float(factor)) if kind == "yarn" else 1.0,
        beta_fast=float(given.get("beta_fast") or 32),
        beta_slow=float(given.get("beta_slow") or 1),
        truncate=bool(given.get("truncate", True)),
    )


def _kind(raw: Raw, given: Raw) -> str:
    """Return the kind of scaling.

    Args:
        raw: content of config.json.
        given: what it has of the rotary embedding.

    Raises:
        TrainerError: RM707 for a kind that is not implemented or lacks its factor, and for a rotated part of a head.
    """
    kind = given.get("rope_type") or given.get("type") or "default"
    if kind in BY_OWN_CLASS:
        raise not_built_in("rope_type", kind)
    if kind not in KINDS:
        raise unsupported("rope_type", kind)
    partial = given.get("partial_rotary_factor") or raw.get("partial_rotary_factor") or 1.0
    if partial != 1.0:
        raise not_built_in("partial_rotary_factor", partial)
    if not given.get("factor") and kind in ("linear", "llama3"):
        next = 'Write it, as "factor": 8.0, next to rope_type.'
        raise TrainerError("RM707", what=f"rope_type = {kind!r} has no factor", where="config.json", next=next)
    return str(kind)


def _theta(*given: Any) -> float:
    """Return the base of the rotary angles, the first that is given. Raises TrainerError RM707 for none above 0."""
    theta = next((each for each in given if each is not None), 10000.0)
    if not float(theta) > 0:
        raise TrainerError("RM707", what=f"rope_theta = {theta!r} is no number above 0", where="config.json")
    return float(theta)


def _rope_given(raw: Raw) -> dict[str, Any]:
    """Return rope_parameters, or the older rope_scaling. Raises TrainerError RM707 where both are there and differ.

    Where both are there transformers 5.23 takes the older one, and with it a theta that stands next to it.
    """
    newer, older = dict(raw.get("rope_parameters") or {}), dict(raw.get("rope_scaling") or {})
    older = {"rope_type" if key == "type" else key: value for key, value in older.items()}
    if newer and any(newer.get(key) != value for key, value in older.items()):
        why = "rope_parameters is there, too, and differs: one would be ignored"
        next = "Write the scaling into rope_parameters, next to rope_theta, and remove rope_scaling."
        raise TrainerError("RM707", what=f"rope_scaling = {raw['rope_scaling']!r}", why=why, next=next)
    return newer or older


def _attention_factor(given: Raw, factor: float) -> float:
    """YaRN's scale of cosine and sine: given, from mscale, or 0.1 ln(factor) + 1."""

    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if given.get("attention_factor") is not None:
        return float(given["attention_factor"])
    if given.get("mscale") and given.get("mscale_all_dim"):
        return scale(given["mscale"]) / scale(given["mscale_all_dim"])
    return scale(1.0)
