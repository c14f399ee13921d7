"""Frozen linear layers that share an input, as one product, with their adapters folded into it.

Two forms. Folded, for outputs wider than inputs: the weight is [W | B] and the input [x | s x A^T], so that adapters
cost a few more columns of one product; W in 4 bits is dequantised next to B. What computes the input leaves room for
those columns, and of its gradient they are not read. Otherwise the narrow product is added to the wide one in place.
Forward and backward are written out, so that no copy of the input per adapter and no sum of outputs exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.adapters.lora import LoraLinear
from trainer.models.adapters.nf4 import NF4Linear
from trainer.models.decoder.recomputation import same_weights
from trainer.models.fast.elementwise import PLAIN, Elementwise
from trainer.models.fast.kernels.wide_product import product

ALIGNED = 8  # columns: 16 bytes in 16 bit, without which a product of a joined weight is slow


@dataclass(frozen=True, kw_only=True)
class JointLayer:
    """One layer's rows of the joint output, and its adapter's columns of the narrow product."""

    base: nn.Linear | NF4Linear
    adapter: LoraLinear | None
    rows: slice
    columns: slice


class Joint:
    """The joint product of some frozen layers; dense weights are moved into one tensor, of which layers keep views."""

    def __init__(
        self,
        layers: Sequence[nn.Module],
        dtype: torch.dtype,
        *,
        fold: bool = True,
        ops: Elementwise = PLAIN,
    ) -> None:
        self.parts, self.dtype, self.ops = _parts(layers), dtype, ops
        self.width = self.parts[0].base.in_features
        self.outputs: int = self.parts[-1].rows.stop
        columns = max((part.columns.stop for part in self.parts), default=0)
        self.columns = -(-columns // ALIGNED) * ALIGNED
        self.dense = all(isinstance(part.base, nn.Linear) for part in self.parts)
        self.folded = fold and self.columns > 0 and self.outputs > self.width
        self.room = self.columns if self.folded else 0
        device = _device(self.parts[0].base)
        self.down = torch.zeros(self.columns, self.width, dtype=dtype, device=device)
        held = (self.outputs, self.width + self.room)
        self.weight = torch.zeros(held, dtype=dtype, device=device) if self.dense else None
        if self.folded and self.weight is not None:
            self.up = self.weight[:, self.width :]
        else:
            self.up = torch.zeros(self.outputs, self.columns, dtype=dtype, device=device)
        self.bias = _joint_bias(self.parts, dtype, device)
        if self.weight is not None:
            self._adopt(self.weight)

    @torch.no_grad()
    def _adopt(self, weight: Tensor) -> None:
        for part in self.parts:
            view = weight[part.rows, : self.width]
            assert isinstance(part.base.weight, Tensor)
            view.copy_(part.base.weight)
            part.base.weight = nn.Parameter(view, requires_grad=False)

    @property
    def adapters(self) -> list[nn.Parameter]:
        """A and B of each adapter in order: what `backward` returns gradients of."""
        found = [part.adapter for part in self.parts if part.adapter is not None]
        return [weight for adapter in found for weight in (adapter.lora_A, adapter.lora_B)]

    @property
    def active(self) -> bool:
        """Whether adapters are there and switched on."""
        return any(part.adapter is not None and part.adapter.enabled for part in self.parts)

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the adapters' weights as they are now, A times its scale."""
        for part in self.parts:
            if part.adapter is not None:
                torch.mul(part.adapter.lora_A, part.adapter.scale, out=self.down[part.columns])
                self.up[part.rows, part.columns].copy_(part.adapter.lora_B)

    def whole_weight(self, *, adapted: bool) -> Tensor:
        """Return the frozen weight, (outputs, width), dequantised where it is held in 4 bits; [W | B] where folded.

        Args:
            adapted: whether adapters take part; W alone otherwise.
        """
        columns = self.room if adapted else 0
        if self.weight is not None:
            return self.weight[:, : self.width + columns]
        made = torch.empty(self.outputs, self.width + columns, dtype=self.dtype, device=self.down.device)
        for part in self.parts:  # each where it belongs: to join them afterwards took 3 % of a step
            place = made[part.rows, : self.width]
            if isinstance(part.base, NF4Linear):
                part.base.dense(self.dtype, self.ops.dequantize, place)
            else:
                place.copy_(part.base.weight)
        if columns:
            made[:, self.width :].copy_(self.up)
        return made

    def forward(
        self, inputs: Tensor, weight: Tensor | None = None, *, fresh: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the joint output, (tokens, outputs), and what `backward` needs.

        Args:
            inputs: (tokens, width + room), of which the last columns are written.
            weight: what `whole_weight` returns, where the caller has it; None to form it.
            fresh: whether `refresh` was called since the adapters' weights last changed.
        """
        if self.active and not fresh and not same_weights():
            self.refresh()
        whole = self.whole_weight(adapted=self.active) if weight is None else weight
        own = inputs[:, : self.width]
        if not self.active:
            return _product(own, whole, self.bias), ()
        if self.folded:
            torch.mm(own, self.down.t(), out=inputs[:, self.width :])
            return _product(inputs, whole, self.bias), (inputs,)
        narrow = inputs @ self.down.t()
        return _product(inputs, whole, self.bias).addmm_(narrow, self.up.t()), (inputs, narrow)

    def backward(
        self, gradient: Tensor, saved: Sequence[Tensor], weight: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Return the gradient by the inputs, whose last columns mean nothing where there is room, and of `adapters`.

        Args:
            gradient: by the joint output, (tokens, outputs).
            saved: what `forward` returned.
            weight: what `whole_weight` returns, where the caller has it; None to form it.
        """
        whole = self.whole_weight(adapted=bool(saved)) if weight is None else weight
        if not saved:
            by_inputs = gradient.new_empty(len(gradient), self.width + self.room)
            torch.mm(gradient, whole[:, : self.width], out=by_inputs[:, : self.width])
            return by_inputs, [None] * len(self.adapters)
        by_inputs = gradient @ whole
        if self.folded:
            inputs, narrow = saved[0][:, : self.width], saved[0][:, self.width :]
            by_narrow = by_inputs[:, self.width :]
        else:
            inputs, narrow = saved
            by_narrow = gradient @ self.up
        by_inputs[:, : self.width].addmm_(by_narrow, self.down)
        return by_inputs, self.adapter_gradients(gradient, inputs, narrow, by_narrow)

    def adapter_gradients(
        self, gradient: Tensor, inputs: Tensor, narrow: Tensor, by_narrow: Tensor
    ) -> list[Tensor | None]:
        """Return the gradients of `adapters`, in their order and dtype.

        Args:
            gradient: by the joint output, (tokens, outputs).
            inputs: of the forward pass, (tokens, width).
            narrow: inputs times A^T and scale, (tokens, columns).
            by_narrow: gradient by `narrow`, (tokens, columns).
        """
        found: list[Tensor | None] = []
        adapters = [(part, part.adapter) for part in self.parts if part.adapter is not None]
        scales = {adapter.scale for _, adapter in adapters}
        joint = product(by_narrow.t(), inputs, adapters[0][1].lora_A.dtype)  # (columns, width)
        if len(scales) == 1:
            joint *= scales.pop()
        for part, adapter in adapters:
            by_down = joint[part.columns] * adapter.scale if scales else joint[part.columns]
            by_up = product(gradient[:, part.rows].t(), narrow[:, part.columns], adapter.lora_B.dtype)
            found += [by_down, by_up]
        return found


def _parts(layers: Sequence[nn.Module]) -> list[JointLayer]:
    parts, row, column = [], 0, 0
    for layer in layers:
        adapter = layer if isinstance(layer, LoraLinear) else None
        base: Any = layer if adapter is None else adapter.base
        rank = 0 if adapter is None else len(adapter.lora_A)
        rows, columns = slice(row, row + base.out_features), slice(column, column + rank)
        parts.append(JointLayer(base=base, adapter=adapter, rows=rows, columns=columns))
        row, column = rows.stop, columns.stop
    return parts


def _device(base: nn.Linear | NF4Linear) -> torch.device:
    return base.device if isinstance(base, NF4Linear) else base.weight.device


def _joint_bias(parts: Sequence[JointLayer], dtype: torch.dtype, device: torch.device) -> Tensor | None:
    if all(part.base.bias is None for part in parts):
        return None
    bias = torch.zeros(parts[-1].rows.stop, dtype=dtype, device=device)
    for part in parts:
        if part.base.bias is not None:
            bias[part.rows] = part.base.bias.detach().to(dtype)
    return bias


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return inputs @ weight.t() if bias is None else torch.addmm(bias, inputs, weight.t())


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, joint: Joint, *adapters: Tensor) -> Tensor:
        outputs, saved = joint.forward(inputs)
        ctx.save_for_backward(*saved)
        ctx.joint = joint
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_inputs, by_adapters = ctx.joint.backward(gradients[0], ctx.saved_tensors)
        return by_inputs, None, *by_adapters


def linear(inputs: Tensor, joint: Joint) -> Tensor:
    """Return (rows, tokens, outputs) of (rows, tokens, width + room)."""
    apply: Any = _Linear.apply
    outputs: Tensor = apply(inputs.flatten(0, -2), joint, *joint.adapters)
    return outputs.view(*inputs.shape[:-1], -1)
