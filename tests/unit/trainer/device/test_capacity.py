from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.cli import main
from trainer.device import capacity as limits
from trainer.device.capacity import ParameterCount, free_memory, require_memory
from trainer.models.build import fitting_layers, size
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
def test_containers_limit_counts_as_well(tmp_path: Path, available, group, free) -> None:
    assert free_memory("cpu", machine(tmp_path, available_kb=available, group=group)) == free


def description(*widths: int, kind: str = "mlp", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "widths": list(widths), **more}


def count(trained: int, frozen: int = 0) -> ParameterCount:
    return ParameterCount(all=trained + frozen, trained=trained)


def remedy(most: int) -> str:
    return f"{most} would fit"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 9), st.integers(200, 5000))
def test_fitting_layers_have_at_most_so_many_parameters(hidden: list[int], inputs: int, most: int) -> None:
    network = description(inputs, *hidden, 1)
    found = fitting_layers(network, most)
    assert size(description(inputs, *found, 1)) <= most
    assert all(1 <= now <= before for now, before in zip(found, hidden, strict=True))


def test_fitting_layers_count_embeddings_and_norms() -> None:
    embeddings = [{"column": 0, "values": 10_000, "width": 50}]
    network = description(52, 64, 64, 1, norm="layer", embeddings=embeddings)
    whole = size(network)
    assert whole > 500_000
    assert size({**network, "widths": [52, *fitting_layers(network, whole - 1), 1]}) < whole


def test_network_that_fits_is_let_through(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: 100 * 20)
    require_memory(count(100), "cpu", remedy=remedy)
    with pytest.raises(TrainerError, match=r"100 would fit"):
        require_memory(count(101), "cpu", remedy=remedy)


def test_frozen_weights_are_counted_once(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: 4 * (5 * 10 + 1000))
    require_memory(count(10, frozen=1000), "cpu", remedy=remedy)
    with pytest.raises(TrainerError, match="RM521"):
        require_memory(count(11, frozen=1000), "cpu", remedy=remedy)


def test_best_weights_on_the_host_spare_a_cards_memory_alone(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: 100 * 16)
    require_memory(count(100), "cuda:0", best_on_host=True, remedy=remedy)
    with pytest.raises(TrainerError, match="RM521"):
        require_memory(count(100), "cuda:0", remedy=remedy)
    with pytest.raises(TrainerError, match="RM521"):
        require_memory(count(100), "cpu", best_on_host=True, remedy=remedy)


def test_unknown_memory_refuses_nothing(monkeypatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: None)
    require_memory(count(10**12), "cpu", remedy=remedy)


@pytest.mark.parametrize(
    "flags", [["--hidden-layers", "1048576,1048576"], ["--hidden-layers", ",".join(["9999"] * 99)]]
)
def test_network_that_cannot_fit_ends_with_numbers(tmp_path: Path, capsys, flags: list[str]) -> None:
    assert main(["train", *flags, "--output", str(tmp_path / "out")]) == 2
    error = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert error["code"] == "RM521"
    assert "would fit" in error["next"]
    assert not (tmp_path / "out").exists()


def test_allocation_that_fails_on_the_cpu_is_out_of_memory(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda device: None)
    assert main(["train", "--hidden-layers", "1048576,1048576", "--output", str(tmp_path / "out")]) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["code"] == "RM521"


@pytest.mark.parametrize("flag", ["--epochs", "--batch-size", "--hidden-layers", "--horizon"])
def test_numbers_beyond_all_sense_are_refused_with_their_bounds(flag: str, capsys) -> None:
    assert main(["train", flag, str(10**12)]) == 2
    error = json.loads(capsys.readouterr().out)
    assert (error["code"], error["what"].partition(":")[0]) == ("RM500", f"argument {flag}")
    assert " to " in error["what"]
