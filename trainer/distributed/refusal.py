"""A rank's refusal, left in a file for its launcher: what a person must put right is not tried again.

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
LASTING = frozenset(
    "RM500 RM501 RM502 RM503 RM504 RM505 RM511 RM512 RM513 RM514 RM515 RM516 RM517 RM518 RM520 RM522 RM524 RM526 RM527 "
    "RM529 RM540 RM544 RM546 RM548 RM550 RM551 RM557 RM562 RM563 RM565 RM567 RM571 RM572 RM573 RM574 RM575 RM577 RM578 "
    "RM579 RM580 RM581 RM582 RM583 RM584 RM585 RM591 RM592 RM593 RM700 RM701 RM703 RM704 RM705 RM706 RM707 RM708 RM709 "
    "RM710 RM711 RM712 RM713 RM714 RM716 RM717 RM730 RM731 RM732 RM735".split()
)


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
