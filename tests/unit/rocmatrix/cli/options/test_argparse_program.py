"""`python -m rocmatrix` reads the same flags as `./invokew`, and prints the same help."""

import re
import subprocess
import sys

import pytest

from rocmatrix.cli.options import argparse_program, task_help
from rocmatrix.cli.options.command import known
from rocmatrix.cli.options.invoke_tasks import collection
from rocmatrix.cli.program import UnderscoreParser
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

VALUES = {str: "-a b", int: "7", float: "0.5", list: "--x=y"}


def by_invoke(words):
    from invoke.parser.context import ParserContext

    (_, task) = UnderscoreParser(initial=ParserContext(), contexts=collection().to_contexts()).parse_argv(words)
    return task.as_kwargs


def typed(command, *, joined):
    """Return words that give every flag of a command a value, those of lists two."""
    words = []
    for flag in command.flags:
        name = f"--{flag.name.replace('-', '_')}"
        if flag.kind is bool:
            words.append(name)
            continue
        if flag.optional:
            words += [f"{name}=false"] if joined else [name]
            continue
        value = VALUES[flag.kind]
        for _ in range(1 + (flag.kind is list)):
            words += [f"{name}={value}"] if joined else [name, value]
    return words


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("name", known())
def test_flags_are_read_as_invoke_reads_them(name, joined):
    words = typed(known()[name], joined=joined)
    assert argparse_program.parsed(known()[name], words) == by_invoke([name, *words])


@pytest.mark.parametrize(
    "typed",
    [
        *("cells", "train", "cell add --gpu=cpu", "cell --gpu cpu add", "cell --action=add", "render -c", "diagnose -"),
        *("test -r trainer/engine -o clip", "report TRAINING/x --repeats 3"),
        *("train --packing false --task lm", "train --packing --task lm", "train --packing"),
    ],
)
def test_defaults_words_and_short_flags_are_read_as_invoke_reads_them(typed):
    words = typed.split()
    assert argparse_program.parsed(known()[words[0]], words[1:]) == by_invoke(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--epoch", "3"], ["--epoch is no flag of train", "did you mean --epochs"]),
        (["train", "--epochs"], ["--epochs needs a value", "rocmatrix train --help"]),
        (["dashboard", "--port", "abc"], ["--port takes a whole number, not 'abc'"]),
        (["dashboard", "--serve=yes"], ["--serve takes no value, and was given 'yes'"]),
        (["build", "cpu"], ["build takes no word 'cpu'"]),
        (["cell"], ["cell needs action"]),
        (["test", "-r"], ["needs a value"]),
    ],
)
def test_wrong_usage_is_rm404_with_the_way_out(words, message):
    with pytest.raises(RocmatrixError, match="RM404") as wrong:
        argparse_program.parsed(known()[words[0]], words[1:])
    assert all(text in wrong.value.render() for text in message), wrong.value.render()


def test_command_that_does_not_exist_ends_with_2_and_the_nearest(capsys):
    with pytest.raises(SystemExit, match="2"):
        argparse_program.main(["trian"])
    assert "did you mean train" in capsys.readouterr().err


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("name", ["train", "cell", "pins"])
def test_help_is_that_of_invokew_but_for_the_program(name, everything, capsys):
    argparse_program.main([name, "--help=all"] if everything else [name, "--help"])
    own = capsys.readouterr().out.replace("python -m rocmatrix", "./invokew").splitlines()
    page = task_help.page(known()[name], program="./invokew", everything=everything, width=80).splitlines()
    assert own == page


def test_program_lists_every_command_without_loading_invoke():
    code = "import sys; from rocmatrix.cli.options import argparse_program as program; program.main([])"
    argv = [sys.executable, "-c", f"{code}; sys.exit('invoke' in sys.modules)"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  ([\w-]+)", done.stdout, re.MULTILINE) == list(known())


def test_program_runs_a_command():
    argv = [sys.executable, "-m", "rocmatrix", "run", "--gpu=cpu", "--user=1:1", "--dry_run", "--", "echo", "a  b"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(" 'a  b'")
