from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.cli import main
from trainer.device import capacity as limits
from trainer.device.capacity import free_memory, parameters, require_memory, shrunk
from trainer.models.mlp import mlp
from trainer.runtime.errors import TrainerError


def machine(root: Path, *, available_kb: int | None, group: tuple[str, str] | None = None) -> Path:
    (root / "proc").mkdir()
    line = f"MemAvailable:   {available_kb} kB\n" if available_kb is not None else ""
    (root / "proc/meminfo").write_text(f"MemTotal:   99999999 kB\n{line}")
    if group:
        (root / "sys/fs/cgroup").mkdir(parents=True)
        for name, text in zip(("max", "current"), group, strict=True):
            (root / f"sys/fs/cgroup/memory.{name}").write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("available", "group", "free"),
    [
        (100, None, 102_400),
        (100, ("max", "5"), 102_400),
        (100, ("50000", "20000"), 30_000),
        (100, ("50000", "60000"), 0),
        (None, None, None),
    ],
)
def test_a_containers_limit_counts_as_well(tmp_path: Path, available, group, free) -> None:
    assert free_memory("cpu", machine(tmp_path, available_kb=available, group=group)) == free


@given(st.lists(st.integers(1, 40), min_size=0, max_size=4), st.integers(1, 9))
def test_parameters_are_those_of_the_network(hidden: list[int], inputs: int) -> None:
    assert parameters([inputs, *hidden, 1]) == sum(each.numel() for each in mlp(inputs, hidden).parameters())


@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=5), st.integers(1000, 10**9))
def test_what_would_fit_fits(hidden: list[int], most: int) -> None:
    found = shrunk([12, *hidden, 1], most)
    assert parameters(found) <= most
    assert all(1 <= now <= before for now, before in zip(found[1:-1], hidden, strict=True))


def test_a_network_that_fits_is_let_through(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: parameters([3, 4, 1]) * 20)
    require_memory([3, 4, 1], "cpu")
    with pytest.raises(TrainerError, match=r"--hidden-layers 4 would fit"):
        require_memory([3, 5, 1], "cpu")


def test_where_nothing_is_known_of_the_memory_nothing_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: None)
    require_memory([10**6, 10**6, 1], "cpu")


@pytest.mark.parametrize(
    "flags", [["--hidden-layers", "1048576,1048576"], ["--hidden-layers", ",".join(["9999"] * 99)]]
)
def test_a_network_that_cannot_fit_ends_with_numbers(tmp_path: Path, capsys, flags: list[str]) -> None:
    assert main(["train", *flags, "--output", str(tmp_path / "out")]) == 2
    error = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert error["code"] == "RM521"
    assert "would fit" in error["next"]
    assert not (tmp_path / "out").exists()


def test_an_allocation_that_fails_on_the_cpu_is_out_of_memory(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: None)
    assert main(["train", "--hidden-layers", "1048576,1048576", "--output", str(tmp_path / "out")]) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["code"] == "RM521"


@pytest.mark.parametrize("flag", ["--epochs", "--batch-size", "--hidden-layers", "--horizon"])
def test_numbers_beyond_all_sense_are_refused_with_their_bounds(flag: str, capsys) -> None:
    assert main(["train", flag, str(10**12)]) == 2
    error = json.loads(capsys.readouterr().out)
    assert (error["code"], error["what"].partition(":")[0]) == ("RM500", f"argument {flag}")
    assert " to " in error["what"]
