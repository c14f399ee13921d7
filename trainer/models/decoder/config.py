"""The shape of a decoder by its configuration, whatever family it came from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class RopeConfig:
    """Rotary position embedding: base, and how frequencies are scaled for longer contexts.

    kind: default, linear, llama3 or yarn. The other fields are those of the Hugging Face configuration.
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_length: int = 8192
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Heads of one decoder. `kv_heads` below `heads`: grouped-query attention. `fused`: one weight for q, k and v.

    scale_by_layer: scores are also divided by the layer's number, from 1 (an option of GPT-2).
    """

    heads: int
    kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    fused: bool = False
    scaled: bool = True
    scale_by_layer: bool = False
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FeedForwardConfig:
    """The feed-forward layer: `gated` is down(act(gate(x)) * up(x)), otherwise down(act(up(x)))."""

    width: int
    activation: str
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, kw_only=True)
class NormConfig:
    """rms, rms_plus_one (weights are stored less 1, as in Gemma) or layer (with a bias, as in GPT-2)."""

    kind: str = "rms"
    epsilon: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """A decoder's shape. `windows`: of each layer, how many positions back it attends, None for all.

    positions: length of the table of learned positions, None where `rope` is used.
    """

    vocabulary: int
    width: int
    windows: tuple[int | None, ...]
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    norm: NormConfig = NormConfig()
    rope: RopeConfig | None = field(default_factory=RopeConfig)
    positions: int | None = None
    tied: bool = False
    embedding_scale: float = 1.0
    dropout: float = 0.0
    initial_std: float = 0.02

    @property
    def layers(self) -> int:
        """Number of blocks."""
        return len(self.windows)
