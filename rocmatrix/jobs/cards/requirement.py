"""Cards that a job must have, and those that the shell leaves it: no job computes on the CPU in a card's place unseen.

A verdict fails closed: a smoke test that passed on the CPU states nothing of the card next to it.
"""

from __future__ import annotations

import os
from dataclasses import replace

from rocmatrix.containers import device_selection
from rocmatrix.host.hardware import Hardware
from rocmatrix.host.processors import INTEGRATED
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import Program
from rocmatrix.matrix.cells.cell import Cell
from rocmatrix.matrix.naming import device_ids
from rocmatrix.matrix.resolver.resolve import Choice
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError


def require_card(program: Program, choice: Choice, hardware: Hardware) -> None:
    """Raise RM102, RM301 or RM303 where `program` states something of a card, and the CPU was taken for want of a cell.

    A processor's own graphics without any cell are no reason: the CPU is what such a machine computes on.
    """
    if not (program.tests_card and choice.unserved):
        return
    cpu = f"`./invokew {program.name} --gpu cpu` tests the CPU alone."
    if choice.unlocked:
        named = f"--cell {choice.unlocked}"
        advice = f"./invokew build {named} --allow-unlocked, then ./invokew {program.name} {named}"
        raise RocmatrixError("RM102", what=choice.unserved, next=f"Build it unchecked: {advice}.\n{cpu}")
    if not _counts(hardware):
        return
    code = "RM303" if hardware.architectures else "RM301"
    raise RocmatrixError(code, what=choice.unserved, next=f"./invokew doctor gives the reason.\n{cpu}")


def with_cards_of_shell(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> JobRequest:
    """Return the job with the cards that this shell's variables leave it, where none are named. Raises RM303.

    They decide natively and in a container alike, and which probes there are cards for.
    """
    return job_request if job_request.cards else replace(job_request, cards=cards_of_shell(cell, hardware))


def cards_of_shell(cell: Cell, hardware: Hardware) -> tuple[int, ...]:
    """Return and print the cards that this shell's variables leave a run of a cell; none without. Raises RM303."""
    if cell.architecture is None:
        return ()
    cards, shown = device_selection.cards_of_shell(hardware, os.environ)
    if cards:
        say(f"cards {', '.join(map(str, cards))}, by {shown} of this shell")
    return cards


def check_native_cards(job_request: JobRequest, *, cell: Cell, hardware: Hardware) -> None:
    """Raise RM301 or RM303 where a card or a ROCm was named that this machine has no card for, before a download.

    The trainer would compute on the CPU, unseen. Not under WSL2, whose cards no tree shows, and not where a variable
    has a card taken for another.
    """
    overridden = any(name.startswith(device_selection.OVERRIDE) for name in os.environ)
    on_cpu = str(job_request.options.get("device") or "") == "cpu"
    if cell.architecture and job_request.names_a_card and not (hardware.wsl2 or overridden or on_cpu):
        device_selection.choose_cards(cell, hardware, job_request.cards or None)


def _counts(hardware: Hardware) -> bool:
    """Return whether a card is there that is more than a processor's own graphics."""
    if hardware.cards:
        return not all(card.integrated for card in hardware.cards)
    known = [device_ids.architecture(device.device_id) for device in hardware.devices]
    return not known or any(name not in INTEGRATED for name in known)
