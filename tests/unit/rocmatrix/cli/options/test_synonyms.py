"""Flags of other programs reach the trainer as its own, from ./invokew and from python -m rocmatrix alike."""

import subprocess
import sys

import pytest

from rocmatrix.cli.options import argparse_program, command, synonyms
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT
from trainer.cli import dashed, known_flags
from trainer.config import synonyms as trainers

KNOWN = ("--learning-rate", "--precision", "--epochs")


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        (["--lr", "3e-4"], ["--learning-rate", "3e-4"]),
        (["--num_train_epochs=3"], ["--epochs=3"]),
        (["--bf16", "True", "--epochs=1"], ["--precision=bf16", "--epochs=1"]),
        (["--bf16=false", "--epochs=1"], ["--epochs=1"]),
        (["--bf16=maybe"], ["--bf16=maybe"]),
        (["--learning-rate=1"], ["--learning-rate=1"]),
        (["--save_total_limit", "3", "--epochs=1"], ["--keep=last=3", "--epochs=1"]),
    ],
)
def test_flag_of_another_program_becomes_ours(typed, ours):
    assert synonyms.translated(["train", *typed], KNOWN) == ["train", *ours]


def test_commands_without_training_keep_their_words():
    assert synonyms.translated(["run", "--lr", "1"], KNOWN) == ["run", "--lr", "1"]


def test_earlier_name_of_an_option_becomes_the_present_one():
    typed = ["generate", "--model=m", "--most", "3", "--prompt=--most"]
    assert synonyms.translated(typed, KNOWN) == ["generate", "--model=m", "--max-new-tokens", "3", "--prompt=--most"]
    assert argparse_program.parsed(command.known()["chat"], ["--most=3"])["max_new_tokens"] == "3"


def test_argparse_takes_synonyms_and_names_the_right_flag_of_others():
    train = command.known()["train"]
    found = argparse_program.parsed(train, ["--lr=3e-4", "--max_grad_norm", "1"])
    assert (found["learning_rate"], found["clip_norm"]) == ("3e-4", "1")
    with pytest.raises(RocmatrixError, match="--micro-batch"):
        argparse_program.parsed(train, ["--gradient_accumulation_steps=4"])


def test_invokew_takes_synonyms_as_they_are_typed():
    argv = ["./invokew", "train", "--lr", "3e-4", "--bf16", "--gpu=cpu", "--in=container", "--dry-run"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"--learning-rate=3e-4", "--precision=bf16"} <= set(done.stdout.split())
    argv = [sys.executable, "-m", "trainer", "train", "--gradient_checkpointing_kwargs", "{}"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "--activation-checkpointing" in done.stderr) == (2, True)


def test_flag_of_a_family_is_answered_by_its_beginning():
    assert "--parallel" in synonyms.advice("--fsdp_auto_wrap_policy")
    assert synonyms.advice("--nothing_like_it") == ""


def test_flags_of_sixty_command_lines_become_the_same_on_both_sides():
    rows = (ROOT / "tests/fixtures/flags_of_trainers.tsv").read_text().splitlines()
    known = known_flags("train")
    for row in rows:
        if row.startswith("#"):
            continue
        words = dashed(row.split("\t")[1].split())
        theirs = trainers.translated(words, known)
        ours = synonyms.translated(["train", *words], known)[1:]
        assert [word.partition("=")[0] for word in ours[:1]] == [word.partition("=")[0] for word in theirs[:1]], words
        if ours[:1] == words[:1]:
            assert bool(synonyms.advice(words[0])) == bool(trainers.advice(words[0])) or words[0] in known, words


def test_sections_are_those_of_the_trainer():
    assert {name.replace("_", "-") for name in trainers.SECTIONS} == synonyms.SECTIONS
