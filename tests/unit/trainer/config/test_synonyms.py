"""Flags of other programs are taken where they mean the same, and answered with the right flag elsewhere."""

import re

import pytest

from trainer.cli import known_flags, parse
from trainer.config import synonyms
from trainer.config.train import settings
from trainer.runtime.errors import TrainerError


def test_synonyms_name_settings_that_are_there_and_hide_none() -> None:
    names = set(settings())
    for other, ours in synonyms.SAME.items():
        assert ours.partition("=")[0] in names, other
        assert other not in names
    assert not {*synonyms.OTHERWISE} & {*names, *synonyms.SAME}


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        (["--lr", "3e-4"], ["--learning-rate=3e-4"]),
        (["--lr=3e-4"], ["--learning-rate=3e-4"]),
        (["--num_train_epochs", "3"], ["--epochs=3"]),
        (["--max-grad-norm=1"], ["--clip-norm=1"]),
        (["--bf16"], ["--precision=bf16"]),
        (["--bf16", "True", "--lr=1e-3"], ["--precision=bf16", "--learning-rate=1e-3"]),
        (["--fp16=False", "--epochs=2"], ["--epochs=2"]),
        (["--num_gpus", "2"], ["--ranks=2"]),
        (["--warmup_steps", "5", "--weight_decay", "0.1"], ["--warmup-steps=5", "--weight-decay=0.1"]),
    ],
)
def test_flag_of_another_program_is_taken_where_it_means_the_same(typed: list[str], ours: list[str]) -> None:
    dashed = [word.replace("_", "-") if word.startswith("--") else word for word in typed]
    assert parse(["train", *dashed]) == parse(["train", *ours])


@pytest.mark.parametrize("flag", sorted(synonyms.OTHERWISE))
def test_flag_that_means_something_else_is_refused_with_the_right_one(flag: str) -> None:
    with pytest.raises(TrainerError) as refused:
        parse(["train", f"--{flag.replace('_', '-')}=4"])
    named = set(re.findall(r"--[a-z][\w-]*", refused.value.why)) - {f"--{flag.replace('_', '-')}", "--help"}
    assert refused.value.code == "RM500"
    assert named
    assert named <= set(known_flags("train"))


def test_value_of_a_switch_that_is_neither_is_refused() -> None:
    with pytest.raises(TrainerError, match="--bf16"):
        parse(["train", "--bf16=maybe"])
