"""The kernels of scaled_dot_product_attention by name, and a context that allows one of them alone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}  # of torch's SDPBackend
# cuDNN's is there on NVIDIA alone, and its values depend on cuDNN's version: it is tried for decoders only.
DECODER_BACKENDS = {**BACKENDS, "cudnn": "CUDNN_ATTENTION"}


def only(kernel: str | None) -> AbstractContextManager[Any]:
    """Return the context in which attention uses `kernel` or fails; backward uses the forward's. None: torch chooses.

    Raises:
        ImportError: in torch before 2.3, for a kernel by name.
    """
    if kernel is None:
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen: AbstractContextManager[Any] = sdpa_kernel(getattr(SDPBackend, DECODER_BACKENDS[kernel]))
    return chosen
