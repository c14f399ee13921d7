"""Trial whether another process can open memory of a card, as NCCL and RCCL do to copy from card to card.

`python -m trainer.diagnostics.probes.pair.ranks.ipc [FIRST SECOND]` prints one JSON line; a process of its own, as a
driver may hang or abort in it. The cards are torch's numbers, 0 and 1 where none are given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.probes import entry, numerics
from trainer.runtime.child_process import run_limited

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.pair.ranks.ipc"
SECONDS = 45.0
COUNT = 1 << 16
OTHER_BYTES = "another process read other bytes"


def error(seconds: float = SECONDS, pair: Sequence[int] = (0, 1)) -> str:
    """Return why another process cannot read a card's memory from the second card of a pair, empty if it can."""
    outcome = run_limited([sys.executable, "-m", MODULE, *map(str, pair)], seconds=seconds)
    if outcome.timed_out:
        return f"opening a card's memory in another process did not end within {seconds:g} s"
    if outcome.returncode != 0:
        how = outcome.signal_name or f"status {outcome.returncode}"
        return f"opening a card's memory in another process ended by {how}: {outcome.stderr_tail(lines=1)}"
    return str(json.loads(outcome.stdout)["error"])


def main(argv: Sequence[str] | None = None) -> int:
    """Share a tensor of the first card with a new process; print what that one found."""
    import torch
    from torch import multiprocessing

    answer, words = entry.claim_stdout(), sys.argv[1:] if argv is None else argv
    first, second = (int(word) for word in words or ("0", "1"))
    context = multiprocessing.get_context("spawn")
    given, answers = context.Queue(), context.Queue()
    reader = context.Process(target=read, args=(given, answers, second), daemon=True)
    reader.start()
    tensor = torch.arange(COUNT, device=torch.device("cuda", first), dtype=torch.int32)
    numerics.wait_for("cuda")
    given.put(tensor)
    found = answers.get(timeout=SECONDS)
    reader.join()
    right = numerics.checksum(tensor)
    message = found if isinstance(found, str) else "" if found == right else OTHER_BYTES
    print(json.dumps({"error": message}), file=answer, flush=True)
    return 0


def read(given: Any, answers: Any, second: int) -> None:
    """Copy, in the other process, the tensor to the second card and send its checksum, or the error.

    Args:
        given: queue that holds the tensor.
        answers: queue that receives the result.
        second: number of the second card.
    """
    try:
        tensor: torch.Tensor = given.get()
        there = tensor.to(f"cuda:{second}")
        found: object = numerics.checksum(there)
        del tensor
    except Exception as refused:
        found = f"{type(refused).__name__}: {str(refused).splitlines()[0]}"
    answers.put(found)


if __name__ == "__main__":
    sys.exit(main())
