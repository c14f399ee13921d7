from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from trainer.device import accelerator
from trainer.device.accelerator import DETERMINISTIC_ENVIRONMENT, choose, make_reproducible, unused_cards
from trainer.runtime.errors import TrainerError

Pretend = Callable[..., None]
XT = SimpleNamespace(name="AMD Radeon RX 7900 XT", gcnArchName="gfx1100", total_memory=20 << 30, major=11, minor=0)
MI210 = SimpleNamespace(
    name="AMD Instinct MI210", gcnArchName="gfx90a:sramecc+:xnack-", total_memory=64 << 30, major=9, minor=0
)


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Give torch cards that are not there; those in `broken` fail their first sum."""

    def cards(*properties: SimpleNamespace, hip: str | None = "6.3", broken: tuple[str, ...] = ()) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(properties))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties[index])
        monkeypatch.setattr(torch.version, "hip", hip)
        faults = dict.fromkeys(broken, "HIP error: invalid device function")
        monkeypatch.setattr(accelerator, "_fault", faults.get)

    return cards


def test_cpu_describes_itself() -> None:
    cpu = choose("cpu")
    assert (cpu.device, cpu.kind, cpu.reason) == ("cpu", "cpu", "asked for with --device")
    assert cpu.name
    assert torch.backends.cpu.get_cpu_capability() in cpu.arch
    assert cpu.memory_bytes > 1 << 28


def test_auto_without_a_card_is_the_cpu_and_reports_why(pretend: Pretend) -> None:
    pretend()
    chosen = choose("auto")
    assert chosen.device == "cpu"
    assert torch.__version__ in chosen.reason
    assert "sees no accelerator" in chosen.reason


def test_auto_takes_the_card_with_most_memory(pretend: Pretend) -> None:
    pretend(XT, MI210)
    chosen = choose("auto")
    assert (chosen.device, chosen.kind, chosen.arch) == ("cuda:1", "rocm", "gfx90a")
    assert chosen.reason == "auto: most memory of 2 working accelerator(s)"


def test_auto_passes_over_a_card_that_does_not_compute(pretend: Pretend) -> None:
    pretend(XT, MI210, broken=("cuda:1",))
    assert choose("auto").device == "cuda:0"
    pretend(XT, broken=("cuda:0",))
    chosen = choose("auto")
    assert chosen.device == "cpu"
    assert "cuda:0 does not compute: HIP error" in chosen.reason


def test_card_on_cuda_has_its_compute_capability(pretend: Pretend) -> None:
    pretend(SimpleNamespace(name="NVIDIA H200", total_memory=1 << 37, major=9, minor=0), hip=None)
    chosen = choose("cuda")
    assert (chosen.device, chosen.kind, chosen.arch) == ("cuda:0", "cuda", "sm_90")


def test_device_that_is_not_there_names_those_that_are(pretend: Pretend) -> None:
    pretend(XT)
    with pytest.raises(TrainerError, match="RM520") as caught:
        choose("cuda:3")
    assert "'cuda:3'" in caught.value.what
    assert "cuda:0 (AMD Radeon RX 7900 XT, gfx1100)" in caught.value.why
    assert "cpu (" in caught.value.why


def test_device_requested_that_does_not_compute_is_refused(pretend: Pretend) -> None:
    pretend(XT, broken=("cuda:0",))
    with pytest.raises(TrainerError, match="RM520") as caught:
        choose("cuda")
    assert "HIP error" in caught.value.why


def test_first_sum_separates_working_devices_from_others() -> None:
    assert accelerator._fault("cpu") is None
    assert accelerator._fault("meta")  # a device without memory: the sum cannot be read


@pytest.mark.usefixtures("torch_as_before")
def test_reproducible_means_seeded_deterministic_and_a_fixed_thread_count() -> None:
    draws = []
    for _ in range(2):
        make_reproducible(seed=7, threads=1)
        draws.append(torch.randn(5))
    assert torch.equal(*draws)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == 1
    assert os.environ.items() >= DETERMINISTIC_ENVIRONMENT.items()


def test_start_of_a_run_imports_no_compiler_and_one_that_comes_later_is_deterministic() -> None:
    program = """
import sys
from trainer.device.accelerator import make_reproducible
make_reproducible(seed=0, threads=1)
assert "torch._dynamo" not in sys.modules and "torch._inductor" not in sys.modules
import torch, torch._inductor.config as config
assert torch.are_deterministic_algorithms_enabled() and getattr(config, "deterministic", True)
make_reproducible(seed=0, threads=1, deterministic=False)
assert not torch.are_deterministic_algorithms_enabled() and not getattr(config, "deterministic", False)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_second_card_that_a_run_leaves_idle_is_named(pretend: Pretend) -> None:
    pretend(XT, XT)
    notice = unused_cards(choose("cuda:1"))
    assert "2 cards of gfx1100 are here and this run takes one: cuda:1. --ranks 2 takes all" in notice
    assert "--ranks auto measures both" in notice


@pytest.mark.parametrize("cards", [(XT,), (XT, MI210)])
def test_card_that_is_alone_of_its_architecture_is_no_notice(
    pretend: Pretend, cards: tuple[SimpleNamespace, ...]
) -> None:
    pretend(*cards)
    assert unused_cards(choose("cuda:0")) == ""


def test_run_on_a_cpu_next_to_cards_is_no_notice(pretend: Pretend) -> None:
    pretend(XT, XT)
    assert unused_cards(choose("cpu")) == ""
