"""Advice names only options of the command that it is given for: every text of both programs is walked."""

import ast
import json
import re
from collections.abc import Callable
from functools import cache
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


def literal(node: ast.expr, assigned: dict[str, list[str]] | None = None) -> str:
    """Return the text of a literal or of an f-string, with a letter for each value in it.

    A name stands for all that the function around it assigns to it, one text behind the other.
    """
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(each) if isinstance(each, ast.Constant) else PLACEHOLDER for each in node.values)
    if isinstance(node, ast.BinOp):
        return literal(node.left, assigned) + literal(node.right, assigned)
    if isinstance(node, ast.IfExp):
        return f"{literal(node.body, assigned)} {literal(node.orelse, assigned)}"
    if isinstance(node, ast.Name) and assigned:
        return " ".join(assigned.get(node.id, [PLACEHOLDER]))
    return PLACEHOLDER


def assigned_in(function: ast.AST) -> dict[str, list[str]]:
    """Return the texts that a function assigns, by the variable."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in pairs_of(target, node.value)]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(literal(value))
    return found


def pairs_of(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return each variable with its value, of `a, b = 1, 2` two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


@cache
def calls() -> list[tuple[str, ast.Call, ast.FunctionDef]]:
    """Return the calls in functions of both programs that give a text to a person, with their places."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node, function)
        for program in ("rocmatrix", "trainer")
        for path in sorted((ROOT / program).rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and (advised(node) or shown(node))
    ]


@cache
def texts(named: Callable[[ast.Call], list[ast.expr]]) -> list[tuple[str, str]]:
    """Return the texts that these calls are given, with their places.

    Args:
        named: the arguments of a call that are wanted.
    """
    return [
        (place, literal(options_, assigned_in(function)))
        for place, node, function in calls()
        for options_ in named(node)
    ]


def advised(call: ast.Call) -> list[ast.expr]:
    """Return what an error is given as its next step."""
    return [keyword.value for keyword in call.keywords if keyword.arg == "next"]


def shown(call: ast.Call) -> list[ast.expr]:
    """Return what else a person reads of an error, and what is printed for a person."""
    texts = [keyword.value for keyword in call.keywords if keyword.arg in ("what", "why")]
    return texts + (call.args if isinstance(call.func, ast.Name) and call.func.id == "say" else [])


def unquoted(text: str) -> str:
    """Return a text without the quoted commands of other programs; a quoted option stays."""
    return re.sub(r"`([^`]*)`", lambda quoted: quoted[1] if quoted[1].startswith("-") else "", text)


PLACEHOLDERS = {f"--{PLACEHOLDER}", f"--{PLACEHOLDER}s"}
OF_DOCKER = {"--gpus"}  # in a sentence of the doctor on versions of Docker


def test_texts_of_both_programs_are_walked():
    assert len(CATALOGS) > 150
    assert len([text for _, text in texts(advised) if len(text) > 10]) > 100
    assert len([text for _, text in texts(shown) if len(text) > 10]) > 500


@pytest.mark.parametrize("task", TASKS)
def test_advice_for_a_task_names_only_its_options(task):
    for text in [*CATALOGS, *(text for _, text in texts(advised))]:
        fitted = advice.fitted(text, TASKS[task])
        assert {*advice.FLAG.findall(unquoted(fitted))} <= TASKS[task], fitted
        assert not fitted or fitted == text or (fitted.endswith(".") and not fitted[0].islower()), fitted


def test_option_in_advice_is_one_of_some_command():
    known = set().union(*TASKS.values()) | ONLY_OF_TRAINER
    for place, text in [*texts(advised), *(("a catalog", text) for text in CATALOGS)]:
        assert {*advice.FLAG.findall(unquoted(text))} <= known, f"{place}: {text}"


def test_option_in_any_text_for_a_person_is_one_of_some_command():
    known = set().union(*TASKS.values()) | ONLY_OF_TRAINER | PLACEHOLDERS | OF_DOCKER
    unknown = [(place, text) for place, text in texts(shown) if not {*advice.FLAG.findall(unquoted(text))} <= known]
    assert unknown == []


def test_text_of_a_variable_is_read_where_it_was_assigned():
    tree = ast.parse(
        "def f():\n    a, b = 'Give --one.', 1\n    a += ' Or --two.'\n    g(next=a if b else 'Give --three.')"
    )
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call))
    text = literal(advised(call)[0], assigned_in(tree))
    assert advice.FLAG.findall(text) == ["--one", "--two", "--three"]


def test_command_in_advice_is_a_task_with_these_options():
    for place, text in [*texts(advised), *(("a catalog", text) for text in CATALOGS)]:
        for task, rest in re.findall(r"\./invokew ([a-z][a-z-]*)([^`.;,]*)", text):
            assert task in {*TASKS, PLACEHOLDER}, f"{place}: {text}"
            assert {*advice.FLAG.findall(rest)} <= TASKS.get(task, {"--help"}), f"{place}: {text}"


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
