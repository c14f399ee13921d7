"""Live tensors at the peak of a step: storages followed from creation to release."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from trainer.models import activation_checkpointing
from trainer.run.memory_plan.allocator import Block, CachingAllocator, PlainAllocator
from trainer.run.memory_plan.tensors.repeated import OF_DEVICE

TRIALS = "trials"
BLAS_WORKSPACE = 32 * 2**20
HANDLES = 2  # the program's thread and autograd's, each with a workspace of its own
PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "workspace", TRIALS)
aten = torch.ops.aten
# Written where it is told to: nothing is made. FakeTensor of torch 2.11 takes its dtype for a factor and raises.
SUMMED_PRODUCT = getattr(aten.addmm, "dtype_out", object())
AROUND_DISPATCH = ("_python_dispatch.py", "_compile.py", "eval_frame.py")  # torch's own, around a mode's function
SEGMENTS = (TRIALS, "forward", "backward", "end of backward", "optimizer")


@dataclass(kw_only=True)
class Peak:
    """The largest moment of a segment of a step, in bytes; `parts` are those of `allocated` then."""

    allocated: int = 0
    reserved: int = 0
    parts: dict[str, int] = field(default_factory=dict)


class LiveMemory(TorchDispatchMode):
    """Follows the storages that operations make, and counts the FLOPs of products.

    Entered above a FakeTensorMode nothing is computed; without one it follows real tensors. A storage belongs to the
    part that is current when it is made: `part`, or workspace within backward, or logits by its last dimension.

    card: what a card's kernels take and give back within one operation counts, and from `begin` on the workspaces of
    BLAS, which torch allocates with its own allocator: 32 MiB as CUBLAS_WORKSPACE_CONFIG=:4096:8 of the trainer's
    deterministic mode has them (aten/src/ATen/cuda/CublasHandlePool.cpp), one a handle, one handle a thread.
    """

    def __init__(
        self,
        allocator: CachingAllocator | PlainAllocator,
        *,
        vocabulary: int = 0,
        card: bool = False,
        call: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._call = call or _called
        self.allocator, self.vocabulary, self.card = allocator, vocabulary, card
        self.part, self.flops, self.wide_flops = "weights", 0.0, 0.0
        self.peaks = {segment: Peak() for segment in SEGMENTS}
        self._awaited = self._arrived = 0
        self.bytes = dict.fromkeys(PARTS, 0)
        self._held: dict[int, list[Any]] = {}  # by address of the storage's object: block, part, weak reference
        self._paused = False
        self._elsewhere: set[int] = set()
        self._sum: tuple[int, weakref.ref[Tensor]] | None = None  # of gradients: first summand's storage, result

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: torch would wrap each call for a compiler that is not running, at a tenth of the time."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, follow what it makes."""
        self.begin_operation()
        named = kwargs or {}
        outputs = named["out"] if func is SUMMED_PRODUCT else self._call(func, args, named)
        if func is OF_DEVICE:
            return outputs
        if not self._paused and self._adds_gradients(func, args, outputs):
            self._sum = (args[0].untyped_storage()._cdata, weakref.ref(outputs))
        elif not self._paused:
            taken = within(func, args) if self.card else 0
            blocks = [self.allocator.allocate(taken)] if taken else []
            for leaf in tree_leaves(outputs):
                if isinstance(leaf, Tensor):
                    self.follow(leaf)
            for block in blocks:
                self.allocator.release(block)
            self._count(func, args, outputs)
        return outputs

    def follow(self, tensor: Tensor) -> None:
        """Follow a tensor's storage from now on, unless that is done already."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._held or key in self._elsewhere or not storage.nbytes():
            return
        held = self.hold(tensor.shape, storage.nbytes())
        self._held[key] = [*held, weakref.ref(storage, lambda _: self._gone(key))]

    def hold(self, shape: Sequence[int], size: int) -> tuple[Block, str]:
        """Take `size` bytes for a tensor of this shape, and return what `let_go` gives back."""
        part, block = self._part_of(shape), self.allocator.allocate(size)
        self.bytes[part] += block.size
        self._look()
        return block, part

    def let_go(self, held: tuple[Block, str]) -> None:
        """Give back what `hold` has taken."""
        block, part = held
        self.bytes[part] -= block.size  # before the block joins its free neighbours
        self.allocator.release(block)

    def elsewhere(self, tensor: Tensor) -> None:
        """Leave a tensor out that waits in the host's memory in a run, and is there to the end of the plan."""
        self._elsewhere.add(tensor.untyped_storage()._cdata)

    def belongs(self, tensor: Tensor, part: str) -> None:
        """Move a tensor's storage to another part."""
        entry = self._held.get(tensor.untyped_storage()._cdata)
        if entry is not None and entry[1] != part:
            block, before, _ = entry
            self.bytes[before] -= block.size
            self.bytes[part] += block.size
            entry[1] = part

    def gradients_of(self, model: nn.Module) -> None:
        """Count a weight's gradient as such from the moment that it is whole."""

        def arrived(weight: Tensor) -> None:
            self._arrived += 1
            if weight.grad is not None:
                self.belongs(weight.grad, "gradients")

        trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._awaited = len(trained)
        for weight in trained:
            weight.register_post_accumulate_grad_hook(arrived)

    @property
    def is_paused(self) -> bool:
        """Whether what is made now is left out."""
        return self._paused

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave what is made within the context out."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    @contextlib.contextmanager
    def inputs_elsewhere(self) -> Iterator[None]:
        """Leave out the inputs that layers have wait on the host (`offloaded`), until each is fetched."""

        def away(value: Tensor) -> Tensor:
            with self.paused():
                return value.clone()

        before = activation_checkpointing.to_host, activation_checkpointing.from_host
        activation_checkpointing.to_host, activation_checkpointing.from_host = away, torch.clone  # type: ignore[assignment]
        try:
            yield
        finally:
            activation_checkpointing.to_host, activation_checkpointing.from_host = before

    def begin(self) -> None:
        """Forget the largest moment so far, and what was there before it; what is there stays.

        The network is built on the host, so the device's allocator never sees what the building took.
        """
        self.allocator = self.allocator.fresh()
        self.bytes = dict.fromkeys(PARTS, 0)
        for entry in self._held.values():
            entry[0] = self.allocator.allocate(entry[0].requested)
            self.bytes[entry[1]] += entry[0].size
        for _ in range(HANDLES if self.card else 0):
            self.bytes["workspace"] += self.allocator.allocate(BLAS_WORKSPACE).size
        self.peaks = {segment: Peak() for segment in SEGMENTS}
        self.flops = self.wide_flops = 0.0
        self._look()

    def sizes(self, part: str | None = None) -> list[int]:
        """Return the bytes of each storage of a part, in the order of making; None: of all but the optimizer's.

        Those of BLAS are there from the first product on, and count among the others.
        """
        workspaces = [BLAS_WORKSPACE] * (HANDLES if self.card and part is None else 0)
        held = [entry for entry in self._held.values() if (entry[1] == part if part else entry[1] != "optimizer")]
        return [entry[0].requested for entry in held] + workspaces

    def _adds_gradients(self, func: Any, args: Any, outputs: Any) -> bool:
        """Return whether autograd itself adds two gradients of one tensor that are there as a whole.

        It adds in place where nothing else holds the first and it is no view, but never tensors that a mode follows
        (can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp): their sum was one tensor too many, 1 GiB of a
        tied embedding of 128,256 x 2,048.
        """
        if func is not aten.add.Tensor or not self._in_backward() or not _by_autograd(sys._getframe(2)):
            return False
        own = not args[0]._is_view() and args[0] is not args[1]
        return own and args[0].untyped_storage()._cdata in self._held

    def begin_operation(self) -> None:
        """Follow a sum of gradients whose first summand outlived it: it was not made in place."""
        if self._sum is not None:
            outputs, self._sum = self._sum[1](), None
            if outputs is not None:
                self.follow(outputs)

    def _gone(self, key: int) -> None:
        outputs = self._sum[1]() if self._sum is not None and self._sum[0] == key else None
        if outputs is not None:  # autograd let go of the summand at once: the sum takes its place
            self._sum, entry, storage = None, self._held.pop(key), outputs.untyped_storage()
            taken = storage._cdata
            self._held[taken] = [*entry[:2], weakref.ref(storage, lambda _: self._gone(taken))]
            return
        self.begin_operation()
        block, part, _ = self._held.pop(key)
        self.let_go((block, part))

    def _look(self) -> None:
        """Compare this moment with the largest so far; what no storage has is an operation's own."""
        peak = self.peaks[self._segment()]
        peak.reserved = max(peak.reserved, self.allocator.reserved)
        if self.allocator.allocated > peak.allocated:
            peak.allocated, peak.parts = self.allocator.allocated, dict(self.bytes)
            peak.parts["workspace"] += self.allocator.allocated - sum(self.bytes.values())

    def _segment(self) -> str:
        """Return where the step is: within each segment memory grows or shrinks evenly with the blocks."""
        if self.part == TRIALS:
            return TRIALS
        if self.part != "activations":
            return "optimizer"
        if not self._in_backward():
            return "forward"
        return "backward" if 2 * self._arrived < self._awaited else "end of backward"

    def _in_backward(self) -> bool:
        return torch._C._current_autograd_node() is not None

    def _part_of(self, shape: Sequence[int]) -> str:
        if self.part != "activations":
            return self.part
        if self.vocabulary and len(shape) == 2 and shape[-1] == self.vocabulary:
            return "logits"
        return "workspace" if self._in_backward() else "activations"

    def _count(self, func: Any, args: Any, outputs: Any) -> None:
        packet = getattr(func, "_overloadpacket", None)
        if packet is aten.addmm_:
            packet = aten.addmm
        formula = flop_registry.get(packet)
        if formula is None:
            return
        tensors = [each for each in args if isinstance(each, Tensor)]  # without the dtype of some products
        self.add_flops(float(formula(*tensors, out_val=outputs)), tensors[-1].dtype)

    def add_flops(self, flops: float, dtype: torch.dtype) -> None:
        """Count FLOPs, those of 32 and more bits apart."""
        if dtype.itemsize > 2:
            self.wide_flops += flops
        else:
            self.flops += flops


def _called(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _by_autograd(frame: FrameType | None) -> bool:
    """Return whether an operation was called by autograd's own code, and not by a function's `backward`."""
    while frame is not None and frame.f_code.co_filename.endswith(AROUND_DISPATCH):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_engine_run_backward"


def within(func: Any, args: Any) -> int:
    """Return the bytes that a card's kernel takes and gives back, next to inputs and outputs.

    The backward pass of a softmax forms the product of gradient and output first (softmax_backward_cuda_out in
    aten/src/ATen/native/cuda/SoftMax.cu). A safe softmax forms an ordinary one and finds rows without a finite number
    before its own result (_safe_softmax in aten/src/ATen/native/transformers/attention.cpp).
    """
    packet = getattr(func, "_overloadpacket", None)
    if packet is aten._softmax_backward_data:
        return int(args[0].nbytes)
    if packet is aten._safe_softmax:
        return int(args[0].nbytes + args[0].numel())
    return 0
