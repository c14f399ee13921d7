"""Wrong usage of `./invokew` ends like every other mistake: a code, what, and the nearest names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from invoke.exceptions import ParseError

from rocmatrix.cli.options.command import known
from rocmatrix.cli.program import OwnConfig, TaskProgram, UnderscoreParser

ROOT = Path(__file__).resolve().parents[4]


def invokew(*words):
    argv = [sys.executable, "-P", str(ROOT / "rocmatrix" / "cli" / "program.py"), "--search-root", str(ROOT), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["train", "--epoch", "3"], ["--epoch is no flag of train", "did you mean --epochs"]),
        (["build", "--tourch=2"], ["--tourch is no flag of build", "did you mean --torch"]),
        (["trian"], ["trian is no task", "did you mean train"]),
        (["help"], ["help is no task", "./invokew --help TASK"]),
        (["train", "my bars.csv"], ["my bars.csv is no task", "--data 'my bars.csv'"]),
        (["explain", "--card", "MI50"], ["--card is no flag of explain", "--gpu"]),
        (["train", "—epochs", "3"], ["—epochs is no task", "two `-`: --epochs"]),
        (["build", "--epochs", "3"], ["--epochs is no flag of build", "a flag of compress, submit, train"]),
        (["train", "--epochs"], ["--epochs needs a value", "./invokew --help train"]),
        (["dashboard", "--port"], ["--port needs a value", "./invokew --help dashboard"]),
        (["dashboard", "--port", "abc"], ["--port takes a whole number, not 'abc'", "./invokew --help dashboard"]),
        (["submit", "--nodes=1.5"], ["--nodes takes a whole number, not '1.5'", "./invokew --help submit"]),
        (["dashboard", "--serve=yes"], ["--serve takes no value, and was given 'yes'", "./invokew --help dashboard"]),
        (["train", "--data", ""], ["--data was given an empty value", "leave the flag out", "--help train"]),
        (["train", "--base="], ["--base was given an empty value"]),
        (["train", "--epochs=3", "--run", ""], ["--run was given an empty value"]),
        (["explain", "--gpu", "MI50", "--rocm=6.2", "--gpu=MI60"], ["--gpu is given twice", "--help explain"]),
        (["features", "--out", "explain", "--out", "a.arrow"], ["--out is given twice", "--help features"]),
        (["report"], ["report needs RUN", "./invokew --help report"]),
        (["explain", "MI300X"], ["MI300X is no task", "--gpu MI300X"]),
        (["build", "rx7900xt"], ["rx7900xt is no task", "--gpu rx7900xt"]),
        (["cells", "--gpu", "MI300X"], ["--gpu is no flag of cells", "./invokew explain --gpu NAME"]),
        (["submit"], ["submit needs --engine", "slurm"]),
        (["train", "--wheelhouse", "/nonexistent"], ["--wheelhouse names no folder", "/nonexistent"]),
        (["--list-depth", "x", "--list"], ["--list-depth takes a whole number, not 'x'", "./invokew --help"]),
        (["cells", "--command-timeout=x"], ["--command-timeout takes a whole number, not 'x'", "./invokew --help"]),
        (["--list-format", "tree", "--list"], ["--list-format takes flat, nested or json, not 'tree'"]),
        (["--list", "trian"], ["'trian' not found", "./invokew --help"]),
        (["--help", "trian"], ["trian is no task", "did you mean train"]),
        (["--collection", "other", "cells"], ["any collection named 'other'", "./invokew --help"]),
        (["--config", "some.ini", "cells"], ["'some.ini'", "./invokew --help"]),
    ],
)
def test_wrong_usage_is_rm404_with_a_hint(words, shown):
    done = invokew(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("RM404")
    assert all(text in done.stderr for text in shown), done.stderr


def test_help_and_list_work_as_in_invoke():
    assert "Available tasks:" in invokew("--list").stdout
    assert "--data-fraction" in invokew("train", "--help=all").stdout


@pytest.mark.parametrize("task", [name for name, each in known().items() if any(f.positional for f in each.flags)])
@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--help=all"]])
def test_help_behind_a_task_that_takes_a_bare_word_is_its_help(task, words):
    done = invokew(task, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: ./invokew {task} ")
    assert known()[task].about.partition("\n")[0].split()[0] in done.stdout


def test_help_of_a_command_after_two_dashes_is_not_that_of_run():
    assert "Usage: ./invokew" not in invokew("run", "--for=docker", "--gpu=cpu", "--", "python", "--help").stdout


def test_help_is_laid_out_for_a_terminal():
    lines = invokew("train", "--help").stdout.splitlines()
    assert max(map(len, lines)) < 80
    assert any(line.startswith("  --epochs=INT ") and "passes over the training rows" in line for line in lines)


@pytest.mark.parametrize("words", [["train", "--help"], ["--list"], ["--help"], ["--version"]])
def test_closed_output_ends_quietly(words):
    argv = [sys.executable, "-P", str(ROOT / "rocmatrix" / "cli" / "program.py"), "--search-root", str(ROOT), *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        reader.stdout.close()
        assert reader.stderr.read() == ""
    assert reader.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("word", ["--list", "--version"])
def test_output_that_has_no_room_is_reported(word):
    argv = [sys.executable, "-P", str(ROOT / "rocmatrix" / "cli" / "program.py"), "--search-root", str(ROOT), word]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("RM205") and "Traceback" not in done.stderr


def test_home_that_is_no_folder_has_no_configuration(monkeypatch):
    monkeypatch.setenv("HOME", os.devnull)
    assert OwnConfig().run.echo is False


def test_configuration_that_was_named_and_cannot_be_opened_is_reported(tmp_path):
    config = OwnConfig(runtime_path=f"{os.devnull}/invoke.yaml")
    with pytest.raises(NotADirectoryError):
        config.load_runtime()


def test_modules_that_pythonpath_names_take_the_place_of_none_of_ours(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('another json')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)}
    done = subprocess.run([ROOT / "invokew", "--version"], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_environment_without_our_packages_is_reported_without_a_traceback():
    argv = [sys.executable, "-I", "-S", str(ROOT / "rocmatrix" / "cli" / "program.py"), "cells"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("RM402 ") and f"Delete {ROOT}/.venv" in done.stderr, done.stderr


def test_output_without_other_characters_than_ascii_shows_escapes():
    plain = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    argv = [sys.executable, "-P", str(ROOT / "rocmatrix/cli/program.py"), "--search-root", str(ROOT), "matrix"]
    done = subprocess.run(argv, capture_output=True, check=False, env=plain)
    assert done.returncode == 0, done.stderr
    assert b"\\u2713" in done.stdout and b"RM499" not in done.stderr


def program_of(*words):
    made = TaskProgram(name="Invoke", binary="./invokew", binary_names=["invokew"], version="1")
    made.normalize_argv(["invokew", *words])
    return made


@pytest.mark.parametrize(
    ("words", "left", "every"),
    [
        (["train", "--help=all"], ["train", "--help"], True),
        (["train", "--help", "all"], ["train", "--help"], True),
        (["train", "-h", "all"], ["train", "--help"], True),
        (["train", "--help"], ["train", "--help"], False),
        (["train", "--help", "allow"], ["train", "--help", "allow"], False),
        (["train", "--epochs=3", "--help=all"], ["train", "--epochs=3", "--help"], True),
        (["--help", "all"], ["--help", "all"], False),  # help on a task of that name
        (["--help=all"], ["--help=all"], False),
        ([], [], False),
    ],
)
def test_word_all_after_a_tasks_help_is_no_tasks_name(words, left, every):
    made = program_of(*words)
    assert (made.argv[1:], made.every_option) == (left, every)


class Known:
    """A context of invoke's parser with a task's name and its flags."""

    def __init__(self, name, *flags):
        self.name, self.flags = name, dict.fromkeys(flags)


def message(typed, text, context=None):
    made = program_of(*typed)
    made.collection = type("Tasks", (), {"task_names": {"train": (), "run": (), "cells": ()}})()
    return made._message(ParseError(text, context))


def test_switch_with_a_value_is_named_with_both():
    shown = message(["train", "--quiet=no"], "No idea what 'no' is!", Known("train", "--quiet"))
    assert "--quiet takes no value, and was given 'no'" in shown
    assert "./invokew --help train" in shown


def test_unknown_word_is_a_flag_of_its_task_or_a_task():
    assert "--quit is no flag of train" in message(["train"], "No idea what '--quit' is!", Known("train", "--quiet"))
    assert "did you mean train" in message(["trian"], "No idea what 'trian' is!")
    assert "--quiet needs a value" in message([], "Flag <Argument: quiet> needed value and was not given one")


def test_command_of_run_is_shown_after_its_dashes():
    shown = message(["run", "--gpu=cpu", "bash", "-c", "true"], "No idea what 'bash' is!", Known("run"))
    assert "./invokew run --gpu=cpu -- bash" in shown
    assert "stands after" not in message(["cells", "bash"], "No idea what 'bash' is!", Known("cells"))


@pytest.mark.parametrize(
    ("words", "task"),
    [
        (["diagnose", "--help"], "diagnose"),
        (["report", "--help"], "report"),
        (["cell", "-h"], "cell"),
        (["diagnose", "some.log", "--help"], "diagnose"),
        (["report", "--help=all"], "report"),
        (["cells", "--help"], "cells"),
        (["--help", "report"], "report"),
    ],
)
def test_help_behind_a_task_is_that_of_the_task_though_it_takes_a_word(words, task):
    done = invokew(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: ./invokew {task} ")


def test_help_names_the_word_that_a_task_takes():
    assert invokew("report", "--help").stdout.startswith("Usage: ./invokew report RUN [--options]\n")


def test_help_behind_two_dashes_is_the_inner_commands():
    made = UnderscoreParser(contexts=[], initial=None)
    assert made._explained_task([]) == ""
    assert "--help" in invokew("run", "--dry-run", "--cell", "cpu-torch2.13.0", "--", "ls", "--help").stdout


def test_interrupt_while_tasks_are_loaded_ends_with_130_and_no_traceback(capsys):
    made = program_of()
    with pytest.raises(SystemExit) as ended, made._explained():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert "Ctrl-C" in capsys.readouterr().err


@pytest.mark.parametrize(("variable", "kept"), [("", False), ("1", True)])
def test_compiled_modules_are_kept_for_the_next_call_but_where_the_environment_forbids_it(monkeypatch, variable, kept):
    """Invoke switches this off for each call, which then compiles all modules again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", variable)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made = TaskProgram(name="Invoke", binary="./invokew", config_class=OwnConfig)
    made.create_config()
    made.parse_core(["invokew", "errors"])
    assert sys.dont_write_bytecode is kept
