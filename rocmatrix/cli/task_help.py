"""The help of a command, laid out for a terminal: each option next to its text, or above it where room is short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper

from rocmatrix.cli import option_sections
from rocmatrix.cli.options.command import Command, Flag

INDENT = "  "
MOST = 28  # columns for the options beside their texts; a longer one stands above its text
LEAST = 30  # columns that a text needs beside the options; with fewer, it stands below
NARROW = 72  # columns below which a remark has no room behind a command
UNDERSCORES = " (underscores may stand for dashes)"


def page(command: Command, usage: str, *, program: str, everything: bool, width: int) -> str:
    """Return the help of a command: in sections where the trainer states the sections of its options.

    Args:
        usage: how the command is called, in one line.
        program: what is typed before the command's name, such as ./invokew.
        everything: list also the options that few need.
        width: columns of the terminal, of which the last one stays free.
    """
    described, name = command.described, command.name
    bare = {flag.name.replace("-", "_") for flag in command.flags if flag.kind in (list, float)}
    options = option_sections.with_types(pairs(command.flags), described, bare=bare)
    if not any("section" in each for each in described.values()):
        return text(usage, command.about, options, width=width)
    found = option_sections.sections(options, described, everything=everything)
    count = option_sections.further(described) * (not everything)
    ends = _wrapped(f"{program} {name} --help=all lists {count} further options.", width, "") if count else []
    ends += ["", "Examples", *_examples([f"{program} {each}" for each in command.examples], width)] * bool(
        command.examples
    )
    return in_sections(usage, command.about, found, ends=ends, width=width)


def pairs(flags: Iterable[Flag]) -> list[tuple[str, str]]:
    """Return every way to write each option with its text, as invoke orders them: by letter, those with one last."""
    return [(_spellings(flag), flag.help) for flag in sorted(flags, key=_order)]


def _spellings(flag: Flag) -> str:
    value = {str: "STRING", int: "INT"}.get(flag.kind)
    spellings = [f"-{flag.short}{f' {value}' * bool(value)}"] if flag.short else []
    return ", ".join([*spellings, f"--{flag.name}{f'={value}' * bool(value)}"])


def _order(flag: Flag) -> tuple[bool, str, str]:
    word = flag.short or flag.name
    return bool(flag.short), word.lower(), word.swapcase()


def text(usage: str, docstring: str, options: Sequence[tuple[str, str]], *, width: int) -> str:
    """Return the help of a task: its usage, docstring and options.

    Args:
        usage: how the task is called, in one line.
        docstring: paragraphs with empty lines between; line ends within one are not kept.
        options: every way to write an option, with commas between, and its text.
        width: columns of the terminal, of which the last one stays free.
    """
    once = [(_once(names), text) for names, text in options]
    note = UNDERSCORES * any("-" in name.lstrip("-") for names, _ in options for name in names.split(", "))
    lines = [
        *_wrapped(usage, width, ""),
        "",
        *_paragraphs(docstring, width),
        "",
        *_wrapped(f"Options{note}:", width, ""),
    ]
    return "\n".join([*lines, *(_options(once, width, _column(once)) if once else [f"{INDENT}none"]), ""])


def in_sections(
    usage: str,
    docstring: str,
    sections: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    *,
    ends: Sequence[str] = (),
    width: int,
) -> str:
    """Return the help of a task with many options.

    Args:
        usage: how the task is called.
        docstring: what it does.
        sections: a title and its options, as pairs of names and text.
        ends: lines after the options: where further ones are listed, and examples.
        width: columns of the terminal, of which the last one stays free.
    """
    lines = [*_wrapped(usage, width, ""), "", *_wrapped(" ".join(docstring.split()), width, "")]
    column = _column([(_once(names), text) for _, options in sections for names, text in options])
    for title, options in sections:
        lines += [
            "",
            *_wrapped(title, width, ""),
            *_options([(_once(names), text) for names, text in options], width, column),
        ]
    return "\n".join([*lines, "", *ends, ""])


def table(usage: str, title: str, rows: Sequence[tuple[str, str]], *, width: int) -> str:
    """Return a list of names with what each is for.

    Args:
        usage: how the program is called, in one line.
        title: the line above the list.
        rows: a name and its text each.
        width: columns of the terminal, of which the last one stays free.
    """
    return "\n".join([*_wrapped(usage, width, ""), "", title, *_options(rows, width, _column(rows))])


def _examples(examples: Sequence[str], width: int) -> Iterator[str]:
    """Yield commands, with what is said of one behind it or, on a narrow terminal, in the line above."""
    for example in examples:
        command, _, remark = example.partition("   ")
        if width >= NARROW or not remark:
            yield INDENT + example
        else:
            yield from (f"{INDENT}# {remark.strip()}", INDENT + command)


def _once(names: str) -> str:
    """Return the ways to write an option without those that have underscores for another's dashes."""
    spellings = sorted(names.split(", "), key=len)
    dashed = {spelling.partition("=")[0] for spelling in spellings if "_" not in spelling.partition("=")[0]}
    flags = [(spelling, spelling.partition("=")[0]) for spelling in spellings]
    return ", ".join(spelling for spelling, flag in flags if flag in dashed or flag.replace("_", "-") not in dashed)


def _paragraphs(docstring: str, width: int) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", docstring or "none")):
        yield from ([""] if number else []) + _wrapped(paragraph, width, "")


def _column(options: Sequence[tuple[str, str]]) -> int:
    return max([len(names) for names, _ in options if len(names) <= MOST], default=0) + 2 * len(INDENT)


def _options(options: Sequence[tuple[str, str]], width: int, column: int) -> Iterator[str]:
    next_to_option = width - column >= LEAST
    margin = " " * column if next_to_option else 3 * INDENT
    for names, text in options:
        lines = _wrapped(text, width, margin)
        if next_to_option and lines and len(names) <= MOST:
            lines[0] = f"{INDENT}{names}".ljust(column) + lines[0].lstrip()
            yield from lines
        else:
            yield from [*_at_commas(names, width), *lines]


def _at_commas(names: str, width: int) -> Iterator[str]:
    """Yield an option that is wider than the terminal in several lines, which begin behind commas."""
    line = INDENT
    for piece in re.findall(r"[^,]+,?", names):
        if len(line + piece) >= width and line.strip():
            yield line.rstrip()
            line = 2 * INDENT
        line += piece
    yield line


def _wrapped(text: str, width: int, margin: str) -> list[str]:
    # a terminal may begin a new line after its last column, so that one stays free; flags are not taken apart
    wrapper = TextWrapper(max(width - 1, len(margin) + 1), break_on_hyphens=False, break_long_words=False)
    wrapper.initial_indent = wrapper.subsequent_indent = margin
    return wrapper.wrap(text)
