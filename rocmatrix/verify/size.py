"""The size of an image against what was recorded for its cell: a relative limit, never an absolute one."""

from __future__ import annotations

from rocmatrix.matrix.kernel_library import Baseline
from rocmatrix.verify.finding import Check, Finding

NAME = "size"


def check(size: int, baseline: Baseline | None, *, cell: str, today: str) -> Check:
    """Compare `size`, the bytes of all files, with the newest recorded one. A cell without one cannot pass."""
    data = {"bytes": size}
    if baseline is None:
        entry = f'{{cell: {cell}, sizes: [{{bytes: {size}, date: "{today}", of: …}}]}}'
        finding = Finding(code="RM218", what=f"no size is recorded for {cell}; add to matrix/baselines.yaml: {entry}")
        return Check(name=NAME, summary=f"{size} bytes, nothing to compare with", findings=(finding,), data=data)
    newest = baseline.newest
    summary = f"{size} bytes, {size / newest.bytes:.3f} of the {newest.bytes} of {newest.date} ({newest.of})"
    data["baseline"] = newest.bytes
    if size <= baseline.most:
        return Check(name=NAME, summary=summary, data=data)
    what = f"{size} bytes are more than {baseline.limit:g} times the {newest.bytes} recorded on {newest.date}"
    return Check(name=NAME, summary=summary, findings=(Finding(code="RM218", what=what),), data=data)
