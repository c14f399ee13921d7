"""A task's help fits a terminal, and loses no word of any option."""

import pytest

from rocmatrix.cli.options import task_help
from rocmatrix.cli.options.command import known


def laid_out(*options, width=80, about="Does it.", usage="Usage: x"):
    return task_help.in_sections(usage, about, [("Options", options)], width=width).splitlines()


@pytest.mark.parametrize("width", [40, 44, 80, 160])
@pytest.mark.parametrize("task", known())
def test_help_of_every_task_fits_and_states_every_option(task, width):
    lines = task_help.page(known()[task], program="./invokew", everything=True, width=width).splitlines()
    end = lines.index("Examples") if "Examples" in lines else len(lines)
    assert all(
        len(line) < width for line in lines[:end] if " " in line.strip()
    )  # choices alone in a line are not taken apart
    words = " ".join(" ".join(lines).split())
    for names, text in task_help.rows(known()[task].flags):
        assert f"{names}{text}".replace(" ", "") in words.replace(" ", "")


def test_word_without_a_flag_is_in_the_usage_and_listed_first():
    lines = task_help.page(known()["report"], program="./invokew", everything=False, width=80).splitlines()
    assert lines[0] == "Usage: ./invokew report RUN [--options]"
    assert lines[lines.index("Options") + 1].split()[0] == "RUN"


def test_switch_of_the_trainer_shows_that_its_value_is_optional():
    (packing,) = [flag for flag in known()["train"].flags if flag.name == "packing"]
    assert task_help.row(packing)[0] == "--packing[=true|false]"


def test_option_too_long_for_the_column_stands_above_its_text():
    long = "--" + "long-" * 6 + "TEXT"
    assert laid_out(("--a", "first"), (long, "second"))[5:] == ["  --a  first", f"  {long}", "       second"]


def test_narrow_terminal_puts_texts_below():
    assert laid_out(("--some-option=TEXT", "what it is for"), width=44)[5:] == [
        "  --some-option=TEXT",
        "      what it is for",
    ]


def test_flags_within_a_text_are_not_taken_apart():
    lines = laid_out(("--a", "at least as large as what stands next to --of-the-other-option"), width=60)
    assert lines[-1].endswith("  --of-the-other-option")


def test_help_keeps_paragraphs_apart():
    assert laid_out(about="One\ntwo.\n\nThree.")[:5] == ["Usage: x", "", "One two.", "", "Three."]


@pytest.mark.parametrize("task", ["train", "submit"])
def test_remarks_on_examples_stand_above_what_is_too_long_for_a_narrow_terminal(task):
    page = task_help.page(known()[task], program="./invokew", everything=False, width=40)
    assert not any("   " in line.strip() for line in page.partition("Examples")[2].splitlines())


def test_choices_wider_than_the_terminal_are_taken_apart_at_commas():
    option = ("--schedule={constant,cosine,linear,inverse-sqrt}", "of the rate")
    lines = laid_out(option, width=40)[-3:]
    assert lines == ["  --schedule={constant,cosine,linear,", "    inverse-sqrt}", "    of the rate"]
