"""Advice names only options of the command that it is given for: every text of both programs is walked."""

import ast
import json
import re
from pathlib import Path

import pytest

import trainer.runtime.advice
from rocmatrix.cli.options.command import known
from rocmatrix.runtime import advice, console
from rocmatrix.runtime.errors import CATALOG, RocmatrixError
from rocmatrix.runtime.paths import TRAINER_OPTIONS
from trainer.runtime.errors import CATALOG as OF_TRAINER

ROOT = Path(__file__).resolve().parents[4]
TASKS = {name: {f"--{flag.name}" for flag in each.flags} | {"--help"} for name, each in known().items()}
ONLY_OF_TRAINER = {
    f"--{option['name'].replace('_', '-')}" for option in json.loads(TRAINER_OPTIONS.read_text(encoding="utf-8"))
}
CATALOGS = [entry.next for entry in (*CATALOG.values(), *OF_TRAINER.values())]
PLACEHOLDER = "x"


def literal(node: ast.expr) -> str:
    """Return the text of a literal or of an f-string, with a letter for each value in it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(each) if isinstance(each, ast.Constant) else PLACEHOLDER for each in node.values)
    if isinstance(node, ast.BinOp):
        return literal(node.left) + literal(node.right)
    return PLACEHOLDER


def raised() -> list[tuple[str, str]]:
    """Return every text that is given as `next=` where an error is raised, with its place."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", literal(keyword.value))
        for program in ("rocmatrix", "trainer")
        for path in sorted((ROOT / program).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "next"
    ]


def unquoted(text: str) -> str:
    """Return a text without the quoted commands of other programs; a quoted option stays."""
    return re.sub(r"`([^`]*)`", lambda quoted: quoted[1] if quoted[1].startswith("-") else "", text)


RAISED = raised()


def test_texts_of_both_programs_are_walked():
    assert len(CATALOGS) > 150
    assert len([text for _, text in RAISED if len(text) > 10]) > 50


@pytest.mark.parametrize("task", TASKS)
def test_advice_for_a_task_names_only_its_options(task):
    for text in [*CATALOGS, *(text for _, text in RAISED)]:
        fitted = advice.fitted(text, TASKS[task])
        assert {*advice.FLAG.findall(unquoted(fitted))} <= TASKS[task], fitted
        assert not fitted or fitted == text or (fitted.endswith(".") and not fitted[0].islower()), fitted


def test_option_in_advice_is_one_of_some_command():
    known = set().union(*TASKS.values()) | ONLY_OF_TRAINER
    for place, text in [*RAISED, *(("a catalog", text) for text in CATALOGS)]:
        assert {*advice.FLAG.findall(unquoted(text))} <= known, f"{place}: {text}"


def test_command_in_advice_is_a_task_with_these_options():
    for place, text in [*RAISED, *(("a catalog", text) for text in CATALOGS)]:
        for task, rest in re.findall(r"\./invokew ([a-z][a-z-]*)([^`.;,]*)", text):
            assert task in TASKS, f"{place}: {text}"
            assert {*advice.FLAG.findall(rest)} <= TASKS[task], f"{place}: {text}"


@pytest.mark.parametrize(
    ("text", "flags", "fitted"),
    [
        ("Start it, or use `--in native`.", {"--in"}, "Start it, or use `--in native`."),
        ("Start it, or use `--in native`.", set(), "Start it."),
        ("Choose with --run; choose --output, or move it.", {"--output"}, "Choose --output, or move it."),
        ("Give --tick.", set(), ""),
        ("Run `./invokew build --cell NAME` first. Give --x.", set(), "Run `./invokew build --cell NAME` first."),
    ],
)
def test_advice_loses_the_clauses_that_cannot_be_followed(text, flags, fitted):
    assert advice.fitted(text, flags) == fitted


def test_rule_of_advice_is_the_same_in_both_programs():
    assert Path(advice.__file__).read_text() == Path(trainer.runtime.advice.__file__).read_text()


def test_failure_of_a_called_task_is_printed_with_its_advice_alone(capsys, monkeypatch):
    @console.edge
    def fails():
        raise RocmatrixError("RM201", what="x")

    monkeypatch.setattr(console, "_OFFERED", set())
    console.offer(TASKS["build"])
    with pytest.raises(SystemExit, match="2"):
        fails()
    assert "--in native" not in (printed := capsys.readouterr().err)
    assert "systemctl start docker" in printed
