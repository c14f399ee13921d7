"""A rank's refusal, left in a file for its launcher: errors that a person must correct are not retried.

torchrun starts the ranks again whatever ended them, as an exit status is all that it sees.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from trainer.runtime.errors import CATALOG, TrainerError

FILE = "TRAINER_REFUSAL"  # path, from the launcher to its ranks
ATTEMPT = "TORCHELASTIC_RESTART_COUNT"  # torchrun's
# Of usage, data and settings, which another attempt meets as the first one did. Not among them: memory, disks, cards
# and connections, which may be free again, and what a step computes, as a resumed run has it from a checkpoint.
_NUMBERS = """
500 501 502 503 504 505 511 512 513 514 515 516 517 518 520 522 524 526 527 529 540 544 546 548 550 551
557 562 563 565 567 571 572 573 574 575 577 578 579 580 581 582 583 584 585 591 592 593 700 701 703 704
705 706 707 708 709 710 711 712 713 714 716 717 730 731 732 735
"""
LASTING = frozenset(f"RM{number}" for number in _NUMBERS.split())


def leave(error: TrainerError, environment: Mapping[str, str] = os.environ) -> None:
    """Leave an error for the launcher where it is one that lasts, of the first attempt; the first rank's stays.

    Args:
        error: what ends this process.
        environment: variables; this process's unless given.
    """
    path = environment.get(FILE)
    if path is None or "RANK" not in environment or error.code not in LASTING or environment.get(ATTEMPT, "0") != "0":
        return
    whole = Path(f"{path}.{os.getpid()}")
    with contextlib.suppress(OSError):  # then the launcher tries again
        whole.write_text(json.dumps(error.parts()))
        os.link(whole, path)  # never a part of it, and not in another's place
    whole.unlink(missing_ok=True)


def left(path: Path) -> TrainerError | None:
    """Return the error that a rank left; None where none did."""
    try:
        parts = json.loads(path.read_text())
        code, what = parts.pop("code"), parts.pop("what")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    named = {name: str(parts[name]) for name in ("where", "why", "next") if name in parts}
    return TrainerError(code, what=what, **named) if code in CATALOG else None
