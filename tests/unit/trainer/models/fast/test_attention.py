"""Which kernel of attention is preferred; times and refusals are made up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import trainer
from trainer.models.decoder.config import AttentionConfig
from trainer.models.fast import attention
from trainer.models.fast.attention import Call, Kernel, leanest
from trainer.models.fast.proof import Trial

GROUPED, COPIES = Kernel(name="flash", grouped=True), Kernel(name="efficient")
MATH = Kernel(name="math", grouped=True)


def tried(kernel, seconds, refused=""):
    return Trial(name=kernel.label, seconds=seconds, refused=refused)


@pytest.mark.parametrize(
    ("flash", "efficient", "math", "expected"),
    [
        (1.0, 0.9, 0.1, GROUPED),  # copies of keys and values for a tenth less time, and all scores
        (1.0, 0.7, 0.1, COPIES),
        (None, 1.0, 0.1, COPIES),
        (None, None, 0.1, MATH),
        (None, None, None, None),
    ],
)
def test_kernel_that_holds_less_is_preferred_unless_another_is_much_faster(flash, efficient, math, expected):
    kernels = [GROUPED, COPIES, MATH]
    times = [flash, efficient, math]
    trials = [
        tried(kernel, time) if time else tried(kernel, None, "wrong")
        for kernel, time in zip(kernels, times, strict=True)
    ]
    assert leanest(kernels, trials) == expected


@pytest.mark.parametrize(("right", "phrase"), [("math", "the fastest that is right: "), ("flash", "holds no scores")])
def test_reason_is_of_the_kernel_that_is_used(right: str, phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def examined(kernel: Kernel, *_: object, timed: bool) -> Trial:
        return Trial(name=kernel.label, seconds=1.0, refused="" if kernel.name == right else "INJECTED")

    heads = AttentionConfig(heads=2, kv_heads=2, head_dim=8)
    call = Call(config=heads, scale=1.0, rows=1, tokens=8, device=torch.device("cpu"), dtype=torch.float32)
    monkeypatch.setattr(attention, "examined", examined)
    assert phrase in attention.choose(call)[1].why


@pytest.mark.parametrize(("right", "timed"), [("flash", False), ("math", True)])
def test_scores_of_a_whole_micro_batch_are_formed_only_where_no_other_kernel_is_right(
    right: str, timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, bool] = {}

    def examined(kernel: Kernel, *_: object, timed: bool) -> Trial:
        found[kernel.label] = timed
        return Trial(name=kernel.label, seconds=1.0, refused="" if kernel.name in (right, "math") else "INJECTED")

    heads = AttentionConfig(heads=4, kv_heads=2, head_dim=8)
    call = Call(config=heads, scale=1.0, rows=1, tokens=8, device=torch.device("cpu"), dtype=torch.float32)
    monkeypatch.setattr(attention, "examined", examined)
    attention.choose(call)
    assert found == dict.fromkeys(found, True) | {"math": timed, "math, grouped": timed}


def test_kernel_that_is_not_timed_has_its_error_alone() -> None:
    heads = AttentionConfig(heads=2, kv_heads=2, head_dim=8)
    call = Call(config=heads, scale=1.0, rows=1, tokens=8, device=torch.device("cpu"), dtype=torch.float32)
    exact = attention.results(lambda *parts: attention.written_out(*parts, scale=1.0), attention.drawn(call.small))
    found = attention.examined(Kernel(name="math"), call, exact, timed=False)
    assert found.error is not None and found.error < 1e-5 and found.seconds is None and not found.refused


def test_flash_attention_of_its_own_package_is_imported_nowhere():
    root = Path(trainer.__file__).parent
    found = [path for path in root.rglob("*.py") if re.search(r"^\s*(import|from) flash_attn", path.read_text(), re.M)]
    assert found == []
    locks = [path for path in (root.parent / "requirements").glob("*.in") if "flash" in path.read_text()]
    assert locks == []


@pytest.mark.parametrize(
    ("name", "rows", "tokens", "timed"),
    [
        ("flash", 1, 2048, 4),
        ("flash", 1, 8192, 1),
        ("flash", 1, 32768, 1),
        ("flash", 16, 2048, 16),
        ("math", 8, 2048, 2),
    ],
)
def test_few_tokens_are_timed_as_more_for_a_launch_takes_longer_than_the_kernel(
    name: str, rows: int, tokens: int, timed: int
) -> None:
    config = AttentionConfig(heads=32, kv_heads=8, head_dim=64)
    cpu = torch.device("cpu")
    call = Call(config=config, scale=1.0, rows=rows, tokens=tokens, device=cpu, dtype=torch.bfloat16)
    assert attention._rows(Kernel(name=name), call) == timed
