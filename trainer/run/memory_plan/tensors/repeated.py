"""Operations on tensors without data, worked out once and repeated by sizes, strides and dtypes alone.

Blocks of a network are alike, so nearly all operations of a plan come again and again. FakeTensorMode has a cache of
its own, whose keys take most of its time: a plan of Qwen2.5-7B took 28 s of processor time with it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

CPU = torch.device("cpu")
OF_DEVICE, OF_VALUE = torch.ops.prim.device.default, torch.ops.aten._local_scalar_dense.default
# Results of these depend on values, or they change a tensor's sizes.
UNLIKE = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.inplace_view}
RESIZING = ("aten::set_", "aten::resize", "aten::_resize", "aten::lift", "aten::copy_sparse")
PLAIN = (type(None), str, torch.dtype, torch.device, torch.layout, torch.memory_format)
Sizes = tuple[Any, ...]  # shape, stride, dtype, offset in the storage


class OtherError(Exception):
    """An argument, or a result, that is not described by sizes alone."""


@dataclass(frozen=True, kw_only=True)
class _Result:
    """A result of an operation. same: place of the argument that it is; of: of the one whose storage it is in."""

    sizes: Sizes | None = None
    same: int | None = None
    of: int | None = None


class RepeatedOperations:
    """Calls operations for a FakeTensorMode, which works each out once for arguments of the same sizes."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self.mode = mode
        self._known: dict[Any, tuple[type | None, list[_Result | None]] | None] = {}

    def __call__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return what the operation returns; results have storages of their own where they had at first.

        A decision by a value is taken to be true: peft's LoHa and LoKr draw a number to decide whether a layer is left
        out in this step.
        """
        if func is OF_DEVICE:
            return args[0].fake_device
        if func is OF_VALUE and args[0].dtype is torch.bool and args[0].constant is None:
            return True
        tensors: list[Tensor] = []
        try:
            sizes = _key(args, tensors), _key(tuple(kwargs.items()), tensors)
            key = (func, *sizes, _shared(tensors), torch.get_default_dtype())
        except OtherError:
            return func(*args, **kwargs)
        if key in self._known:
            known = self._known[key]
            return func(*args, **kwargs) if known is None else self._made(*known, tensors)
        outputs = func(*args, **kwargs)
        self._known[key] = _described(func, outputs, tensors)
        return outputs

    def _made(self, container: type | None, results: list[_Result | None], tensors: list[Tensor]) -> Any:
        made = [None if each is None else self._tensor(each, tensors) for each in results]
        return made[0] if container is None else container(made)

    def _tensor(self, result: _Result, tensors: list[Tensor]) -> Tensor:
        if result.same is not None:
            return tensors[result.same]
        assert result.sizes is not None
        return fake(self.mode, *result.sizes, of=None if result.of is None else tensors[result.of])


def fake(
    mode: FakeTensorMode,
    shape: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype,
    offset: int,
    *,
    of: Tensor | None = None,
) -> FakeTensor:
    """Return a tensor without data.

    Args:
        mode: its mode.
        shape: its sizes.
        stride: in elements.
        dtype: of its elements.
        offset: in elements, within the storage of another.
        of: in whose storage it is; None for one of its own.
    """
    with torch._C._DisableTorchDispatch():
        if of is None:
            empty = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        else:
            empty = torch.empty(0, dtype=dtype, device="meta").set_(of.untyped_storage(), offset, shape, stride)
    made = Tensor._make_subclass(FakeTensor, empty, False, dispatch_device=True, device_for_backend_keys=CPU)
    made.__dict__.update(_attributes(mode))  # FakeTensor's constructor takes five times as long
    return made


@functools.cache
def _attributes(mode: FakeTensorMode) -> dict[str, Any]:
    """Return the attributes of a tensor of a mode: none is of the tensor itself, but of those that hold its values."""
    return dict(FakeTensor(mode, torch.empty(0, device="meta"), CPU).__dict__)


def _key(value: Any, tensors: list[Tensor]) -> Any:
    """Return what of an argument decides the result, and append its tensors; 1, 1.0 and True are different."""
    kind = type(value)
    if kind is int or kind in PLAIN:
        return value
    if kind is tuple or kind is list or kind is torch.Size:
        return tuple([_key(each, tensors) for each in value])
    if kind is bool or kind is float:
        return kind, value
    if isinstance(value, FakeTensor) and value.constant is None and value.fake_device == CPU:
        tensors.append(value)
        return sizes_of(value)
    raise OtherError


def _shared(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return which of the arguments are one tensor or share a storage, as a result may be any of them."""
    storages = [tensor.untyped_storage()._cdata for tensor in tensors]
    if len(set(storages)) == len(storages):
        return ()
    same = [id(tensor) for tensor in tensors]
    return tuple([(storages.index(one), same.index(other)) for one, other in zip(storages, same, strict=True)])


def sizes_of(tensor: Tensor) -> Sizes:
    """Return shape, stride, dtype and offset. Raises OtherError for what is not described by these alone."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        raise OtherError
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.storage_offset()


def _described(func: Any, outputs: Any, tensors: list[Tensor]) -> tuple[type | None, list[_Result | None]] | None:
    """Return how results like these are made; None where the operation has to be called each time."""
    name = func.name() if isinstance(func, torch._ops.OpOverload) else ""
    if not name.startswith(("aten::", "prims::")) or name.startswith(RESIZING) or UNLIKE & set(func.tags):
        return None
    container = type(outputs) if type(outputs) in (tuple, list) else None
    leaves = list(outputs) if container else [outputs]
    try:
        found = [None if each is None else _result(each, tensors) for each in leaves]
    except OtherError:
        return None
    new = [each.untyped_storage()._cdata for each, result in zip(leaves, found, strict=True) if _is_new(result)]
    return (container, found) if len(set(new)) == len(new) else None


def _is_new(result: _Result | None) -> bool:
    return result is not None and result.same is None and result.of is None


def _result(output: Any, tensors: list[Tensor]) -> _Result:
    for place, tensor in enumerate(tensors):
        if output is tensor:
            return _Result(same=place)
    if not isinstance(output, FakeTensor) or output.constant is not None or output.fake_device != CPU:
        raise OtherError
    sizes, storage = sizes_of(output), output.untyped_storage()
    for place, tensor in enumerate(tensors):
        if tensor.untyped_storage()._cdata == storage._cdata:
            return _Result(sizes=sizes, of=place)
    if sizes[3] or storage.nbytes() != _least_bytes(*sizes[:3]):
        raise OtherError
    return _Result(sizes=sizes)


def _least_bytes(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> int:
    """Return the bytes of a storage of these sizes alone."""
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))) * dtype.itemsize
