"""Named tensors as the pieces of a safetensors file, without a copy of their bytes.

`safetensors.torch.save` makes three copies of everything while no other thread of Python runs, and training stands
still as long. What is written here `safetensors.torch.load` reads. Format: the safetensors project's README: eight
bytes with the header's length, the header as JSON, then the tensors' bytes without a gap, little-endian.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
LINE = 8  # the header is filled up with blanks, so that the first tensor begins at a multiple of it


def chunks(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Yield the file's header, then each tensor's bytes, which are the tensor's own memory where it is contiguous.

    Raises:
        TypeError: for a dtype that has no name in the format, before anything is yielded.
    """
    if sys.byteorder != "little":
        raise TypeError("tensors are written as they lie in memory, and this machine is big-endian")
    wide_first = dict(sorted(tensors.items(), key=lambda each: (-each[1].element_size(), each[0])))  # keeps all aligned
    yield header(wide_first)
    for value in wide_first.values():
        yield value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def header(tensors: Mapping[str, Tensor]) -> bytes:
    """Return length and text of the header for tensors in this order."""
    record, begin = {}, 0
    for name, value in tensors.items():
        if value.dtype not in NAMES:
            raise TypeError(f"{name}: {value.dtype} has no place in a checkpoint")
        end = begin + value.numel() * value.element_size()
        record[name] = {"dtype": NAMES[value.dtype], "shape": list(value.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(record, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LINE)
    return len(text).to_bytes(8, "little") + text
