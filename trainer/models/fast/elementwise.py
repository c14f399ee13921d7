"""What stands between a block's products: norms, head rotation and gated activations, plain or compiled.

All are computed in fp32 (fp64 for fp64) and rounded once at the end. Compiled, each is one pass over memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.adapters.nf4 import dequantize
from trainer.models.decoder.config import AttentionConfig
from trainer.models.decoder.layers import RMSNorm

aten = torch.ops.aten
Arguments = tuple[Tensor, Tensor | None, str, float]


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A frozen norm's numbers; `kind` as in NormConfig."""

    kind: str
    weight: Tensor
    bias: Tensor | None
    epsilon: float

    @classmethod
    def of(cls, module: nn.Module) -> Norm:
        """Read a decoder's norm."""
        if isinstance(module, RMSNorm):
            kind = "rms_plus_one" if module.plus_one else "rms"
            return cls(kind=kind, weight=module.weight, bias=None, epsilon=module.epsilon)
        assert isinstance(module, nn.LayerNorm)
        return cls(kind="layer", weight=module.weight, bias=module.bias, epsilon=module.eps)

    def arguments(self) -> Arguments:
        """Return what `normed` takes after the states."""
        return self.weight, self.bias, self.kind, self.epsilon


def _wide(states: Tensor) -> Tensor:
    return states if states.dtype == torch.float64 else states.float()


def normed(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kind: str,
    epsilon: float,
    dtype: torch.dtype,
    room: int = 0,
) -> Tensor:
    """Return the norm of `states`, shaped as they are but for the room.

    Args:
        states: (…, width).
        weight: (width,); for rms_plus_one less 1.
        bias: (width,), read for layer alone; None for a layer norm without.
        kind: rms, rms_plus_one or layer, as in NormConfig.
        epsilon: added to the mean square, or to the variance.
        dtype: of the result.
        room: columns of zeros after the result's own, for another to write to.
    """
    wide = _wide(states)
    factor = weight.to(wide.dtype)
    if kind == "layer":
        shift = None if bias is None else bias.to(wide.dtype)
        return _with_room(functional.layer_norm(wide, wide.shape[-1:], factor, shift, epsilon).to(dtype), room)
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return _with_room((scaled * (1.0 + factor if kind == "rms_plus_one" else factor)).to(dtype), room)


def _with_room(values: Tensor, room: int) -> Tensor:
    return functional.pad(values, (0, room)) if room else values


def added_and_normed(
    states: Tensor,
    more: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kind: str,
    epsilon: float,
    dtype: torch.dtype,
    room: int = 0,
) -> tuple[Tensor, Tensor]:
    """Return states + more in the states' dtype, and the norm of the sum.

    Args:
        states: (…, width).
        more: what is added, shaped as `states`.
        weight: of the norm, (width,); for rms_plus_one less 1.
        bias: of the norm, (width,), read for layer alone; None for a layer norm without.
        kind: rms, rms_plus_one or layer, as in NormConfig.
        epsilon: added to the mean square, or to the variance.
        dtype: of the norm; the sum keeps that of `states`.
        room: see `normed`.
    """
    total = (_wide(states) + _wide(more)).to(states.dtype)
    return total, normed(total, weight, bias, kind, epsilon, dtype, room)


def heads(
    joint: Tensor,
    cosine: Tensor | None,
    sine: Tensor | None,
    query_norm: Arguments | None,
    key_norm: Arguments | None,
    count: int,
    shared: int,
    width: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return query, key and value, (rows, tokens, heads, width) each, normed and rotated where the decoder does so.

    Args:
        joint: outputs of the joint projection, (rows, tokens, (count + 2 shared) width).
        cosine: of rotary positions, (rows, 1, tokens, width); None for a decoder without.
        sine: as `cosine`.
        query_norm: the norm of query heads, see `Norm.arguments`; None for a decoder without.
        key_norm: likewise of key heads.
        count: query heads.
        shared: key heads, of which each serves count / shared query heads.
        width: of one head.
    """
    query, key, value = joint.split([count * width, shared * width, shared * width], dim=-1)
    query, key, value = (each.unflatten(-1, (-1, width)) for each in (query, key, value))
    if query_norm is not None and key_norm is not None:
        query, key = normed(query, *query_norm, joint.dtype), normed(key, *key_norm, joint.dtype)
    if cosine is not None and sine is not None:
        query, key = _turned(query, cosine, sine), _turned(key, cosine, sine)
    return query, key, value


def _turned(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate (rows, tokens, heads, width) by (rows, 1, tokens, width)."""
    wide = _wide(states)
    first, second = wide.chunk(2, dim=-1)
    turned = torch.cat([-second, first], dim=-1)
    return (wide * cosine.transpose(1, 2) + turned * sine.transpose(1, 2)).to(states.dtype)


ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "silu": (functional.silu, aten.silu_backward),
    "gelu": (functional.gelu, aten.gelu_backward),
    "tanh": (partial(functional.gelu, approximate="tanh"), partial(aten.gelu_backward, approximate="tanh")),
}
KINDS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}


def inner(joint: Tensor, kind: str, gated: bool) -> Tensor:
    """Return act(gate) * up, or act(up) without a gate, (tokens, width) in the dtype of `joint`.

    Args:
        joint: gate and up side by side, (tokens, 2 width); without a gate up alone, (tokens, width).
        kind: a key of ACTIVATIONS: silu, gelu or tanh.
        gated: whether `joint` begins with a gate.
    """
    act, _ = ACTIVATIONS[kind]
    if not gated:
        return act(_wide(joint)).to(joint.dtype)
    gate, up = joint.chunk(2, dim=-1)
    return (act(_wide(gate)) * _wide(up)).to(joint.dtype)


def inner_backward(joint: Tensor, gradient: Tensor, kind: str, gated: bool) -> tuple[Tensor, Tensor]:
    """Return the gradient by the joint projection, shaped as it is, and the result of `inner`, computed once more.

    Args:
        joint: gate and up side by side, (tokens, 2 width); without a gate up alone, (tokens, width).
        gradient: by the result of `inner`, (tokens, width).
        kind: a key of ACTIVATIONS: silu, gelu or tanh.
        gated: whether `joint` begins with a gate.
    """
    act, back = ACTIVATIONS[kind]
    wide = _wide(gradient)
    if not gated:
        inputs = _wide(joint)
        return back(wide, inputs).to(joint.dtype), act(inputs).to(joint.dtype)
    gate, up = (_wide(each) for each in joint.chunk(2, dim=-1))
    value = act(gate)
    by_gate, by_up = back(wide * up, gate), wide * value
    return torch.cat([by_gate.to(joint.dtype), by_up.to(joint.dtype)], dim=-1), (value * up).to(joint.dtype)


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """The functions above, each plain or compiled; `name` for records.

    inner_backward_over: does what `inner_backward` does in the memory of its inputs; None where nothing does.
    """

    name: str
    normed: Callable[..., Tensor] = normed
    added_and_normed: Callable[..., tuple[Tensor, Tensor]] = added_and_normed
    heads: Callable[..., tuple[Tensor, Tensor, Tensor]] = heads
    inner: Callable[..., Tensor] = inner
    inner_backward: Callable[..., tuple[Tensor, Tensor]] = inner_backward
    dequantize: Callable[..., Tensor] = dequantize
    inner_backward_over: Callable[..., tuple[Tensor, Tensor]] | None = None


PLAIN = Elementwise(name="plain elementwise")


def compiled(*, dynamic: bool | None = None, compile_: Any = None) -> Elementwise:
    """Return the functions compiled; they compile at their first call, and once more where lengths vary.

    dynamic: False compiles each length for itself, which gradients of trained norms need: sums over all tokens.
    compile_: takes the place of torch.compile.
    """
    make: Any = partial(compile_ or torch.compile, dynamic=dynamic)
    return Elementwise(
        name="compiled elementwise",
        normed=make(normed),
        added_and_normed=make(added_and_normed),
        heads=make(heads),
        inner=make(inner),
        inner_backward=make(inner_backward),
        dequantize=make(dequantize),
    )


def head_shape(config: AttentionConfig) -> tuple[int, int, int]:
    """Return what `heads` takes last."""
    return config.heads, config.kv_heads, config.head_dim
