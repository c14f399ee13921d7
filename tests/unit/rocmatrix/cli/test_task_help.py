"""A task's help fits a terminal, and loses no word of any option."""

import pytest

from rocmatrix.cli import task_help
from rocmatrix.cli.options.command import known


def laid_out(*options, width=80, docstring="Does it.", usage="Usage: x"):
    return task_help.text(usage, docstring, options, width=width).splitlines()


@pytest.mark.parametrize("width", [40, 44, 80, 160])
@pytest.mark.parametrize("task", known())
def test_help_of_every_task_fits_and_states_every_option(task, width):
    options = task_help.pairs(known()[task].flags)
    lines = laid_out(*options, width=width, usage=f"Usage: ./invokew {task} [--options]")
    assert max(len(line) for line in lines if width > 40 or len(line.split()) > 1) < width  # one word may be longer
    words = " ".join(" ".join(lines).split())
    for names, told in options:
        assert " ".join(f"{names.split(', ')[-1].replace('_', '-')} {told}".split()) in words


def test_option_is_named_once_and_the_underscores_are_reported():
    lines = laid_out(("--a_b=INT, --a-b=INT", "first"), ("--with_c", "second"))
    assert lines[4:] == ["Options (underscores may stand for dashes):", "  --a-b=INT  first", "  --with_c   second"]
    assert "Options:" in laid_out(("-c, --check", "only look"))


def test_option_too_long_for_the_column_stands_above_its_text():
    long = "--" + "long-" * 6 + "STRING"
    assert laid_out(("--a", "first"), (long, "second"))[5:] == ["  --a  first", f"  {long}", "       second"]


def test_narrow_terminal_puts_texts_below():
    assert laid_out(("--some-option=STRING", "what it is for"), width=44)[5:] == [
        "  --some-option=STRING",
        "      what it is for",
    ]


def test_flags_within_a_text_are_not_taken_apart():
    lines = laid_out(("--a", "at least as large as what stands beside --of-the-other-option"), width=60)
    assert lines[-1].endswith("  --of-the-other-option")


def test_help_keeps_paragraphs_apart_and_names_an_empty_default():
    assert laid_out(docstring="One\ntwo.\n\nThree.")[2:] == ["One two.", "", "Three.", "", "Options:", "  none"]
    assert laid_out(docstring="")[2] == "none"


@pytest.mark.parametrize("task", ["train", "submit"])
@pytest.mark.parametrize("everything", [False, True])
def test_help_in_sections_fits_a_narrow_terminal_but_for_its_examples(task, everything):
    page = task_help.page(
        known()[task], f"Usage: ./invokew {task}", program="./invokew", everything=everything, width=40
    )
    lines, _, examples = page.partition("Examples")
    assert max(len(line) for line in lines.splitlines() if len(line.split()) > 1) < 40
    assert not any("   " in line.strip() for line in examples.splitlines())  # remarks stand above what is too long


def test_choices_wider_than_the_terminal_are_taken_apart_at_commas():
    option = ("--schedule={constant,cosine,linear,inverse-sqrt}", "of the rate")
    lines = laid_out(option, width=40)[-3:]
    assert lines == ["  --schedule={constant,cosine,linear,", "    inverse-sqrt}", "    of the rate"]
