"""Choice of the BLAS library behind torch's matrix products."""

from __future__ import annotations


def select_back_end(name: str) -> str | None:
    """Select torch's BLAS back end `name`; return None, or the reason why torch does not use it.

    torch falls back by itself where the library does not support the card, so what it chose is read back.

    Args:
        name: torch's name, "cublas" (hipBLAS on ROCm) or "cublaslt" (hipBLASLt on ROCm).
    """
    import torch  # a probe that is to report a missing torch imports this module, too

    prefer = getattr(torch.backends.cuda, "preferred_blas_library", None)
    if prefer is None:
        return f"torch {torch.__version__} has no preferred_blas_library"
    prefer(name)
    chosen = str(prefer()).rpartition(".")[2].lower()
    return None if chosen == name else f"torch fell back to {chosen} on this card"
