"""Events of cards from a STAND-IN of the kernel's file, a pipe: no card has sent any."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.distributed.watchdog.card_events import MASK, MOST, parse, sentence, watch_cards

RESET = "3 1 scheduler timeout\n4 1 scheduler timeout\n"


class Kernel:
    """Answers the ioctl with one end of a socket pair, and keeps the other."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}

    def __call__(self, file: int, request: int, content: bytes) -> bytes:
        assert request == 0xC0084B1F
        gpu_id, _ = struct.unpack("<II", content)
        if gpu_id == 66:
            raise OSError(22, "EINVAL")
        import socket

        ours, theirs = socket.socketpair()
        self.ends[gpu_id] = ours.detach()
        return struct.pack("<II", gpu_id, theirs.detach())


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    yield made
    for file in made.ends.values():
        os.close(file)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for node, gpu_id in enumerate((0, 51, 66, 52)):  # the first is a processor, the third refuses
        (tmp_path / f"nodes/{node}").mkdir(parents=True)
        (tmp_path / f"nodes/{node}/gpu_id").write_text(f"{gpu_id}\n")
    (tmp_path / "kfd").touch()
    return tmp_path


def test_events_of_each_card_are_requested_and_read_without_waiting(tree: Path, kernel: Kernel) -> None:
    events = watch_cards(tree / "kfd", tree / "nodes", kernel)
    assert set(events.files) == {51, 52}
    assert [struct.unpack("<Q", os.read(end, 8))[0] for end in kernel.ends.values()] == [MASK, MASK]
    events.poll()
    assert events.seen == []
    os.write(kernel.ends[52], RESET.encode())
    events.poll()
    assert [(event.gpu_id, event.kind) for event in events.resets()] == [(52, "reset begun"), (52, "reset ended")]
    events.close()
    assert events.files == {}


def test_reset_after_a_day_of_throttling_is_kept(tree: Path, kernel: Kernel) -> None:
    events = watch_cards(tree / "kfd", tree / "nodes", kernel)
    for _ in range(12):
        os.write(kernel.ends[52], b"2 7f:1\n" * 20)
        events.poll()
    os.write(kernel.ends[51], RESET.encode() * 3)
    events.poll()
    assert [event.kind for event in events.resets()] == ["reset begun", "reset ended"] * 3
    assert len(events.seen) == MOST + 6
    events.close()


@pytest.mark.parametrize("missing", ["kfd", "nodes"])
def test_machine_without_the_kernels_interface_has_no_events(tree: Path, kernel: Kernel, missing: str) -> None:
    events = watch_cards(tree / ("none" if missing == "kfd" else "kfd"), tree / "none", kernel)
    events.poll()
    assert (events.files, events.seen) == ({}, [])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (RESET, ["reset begun", "reset ended"]),
        ("2 7f:1\n", ["throttled by heat"]),
        ("1 10:python\n", []),
        ("zz 1\n\n3\n", ["reset begun"]),
        ("", []),
    ],
)
def test_lines_are_read_and_what_is_unknown_is_left_out(text: str, kinds: list[str]) -> None:
    assert [event.kind for event in parse(51, text)] == kinds


def test_reset_is_distinguished_from_a_hang_by_its_card_and_cause() -> None:
    assert sentence(list(parse(51, RESET))) == (
        "The driver reset GPU 51 (scheduler timeout): it is a reset, and no hang of the program"
    )
    assert sentence([]) == ""
