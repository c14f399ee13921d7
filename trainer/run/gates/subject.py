"""Subject of the gates: a run's shapes, number format and device, as JSON's own types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trainer.data.tokens.row import sequences_of
from trainer.models.pretrained.families import decoder_config

MOST_TOKENS = 4096  # of a narrow product and of a compiled layer: the comparison in fp64 is the host's
WIDTH = 128  # of a compiled layer where the network is no decoder
PRECISION, ADAPTER, NF4, CANARY, COMPILE = "precision", "adapter", "nf4", "canary", "compile"
ATTENTION = "attention "  # and the kernel's name
KERNELS = ("flash", "cudnn", "efficient", "math")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The shapes of a run. `device` is torch's name of it, `precision` one of fp32, bf16, fp16.

    rows, tokens: of a micro-batch at most. width: of the residual stream; inner: of the feed-forward layer. rank: of
    the adapter, 0 without one; padded: the rank that its products are computed with, 0 for its own.
    """

    device: str
    precision: str
    rows: int = 1
    tokens: int = 1
    width: int = WIDTH
    inner: int = 2 * WIDTH
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    rank: int = 0
    padded: int = 0

    @property
    def count(self) -> int:
        """Tokens of a product that is tried."""
        return max(1, min(self.rows * self.tokens, MOST_TOKENS))

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON holds them."""
        return asdict(self)


def subject_of(planned: Mapping[str, Any] | None, *, rows: int, device: str, precision: str) -> Subject:
    """Return what is tried for a network.

    Args:
        planned: what the network's plan of memory takes, see `NetworkSpec.planned`; None for one that is no decoder.
            A decoder with an adapter by peft is computed by transformers' class, and counts as none.
        rows: of a micro-batch at most.
        device: torch's name of the device.
        precision: number format that is to be used.
    """
    if planned is None or planned.get("peft"):
        return Subject(device=device, precision=precision, rows=rows)
    config = decoder_config(planned["raw"])
    return Subject(
        device=device,
        precision=precision,
        rows=rows * sequences_of(planned["method"], planned["group"]),
        tokens=int(planned["sequence"]),
        width=config.width,
        inner=config.feed_forward.width,
        heads=config.attention.heads,
        kv_heads=config.attention.kv_heads,
        head_dim=config.attention.head_dim,
        rank=int(planned["rank"]) if planned["adapter"] != "none" else 0,
    )
