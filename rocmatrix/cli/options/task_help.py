"""The help of a command, laid out for a terminal: each option next to its text, or above it where room is short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper

from rocmatrix.cli.options import option_sections
from rocmatrix.cli.options.command import Command, Flag

INDENT = "  "
MOST = 28  # columns for the options with their texts next to them; a longer one stands above its text
LEAST = 30  # columns that a text needs next to the options; with fewer, it stands below
NARROW = 72  # columns below which a remark has no room behind a command

Row = tuple[str, str]  # an option as it is typed, and its text


def page(command: Command, *, program: str, everything: bool, width: int) -> str:
    """Return the help of a command: in sections where the trainer states the sections of its options.

    Args:
        program: what is typed before the command's name, such as ./invokew.
        everything: list also the options that few need.
        width: columns of the terminal, of which the last one stays free.
    """
    described, name = command.described, command.name
    usage = " ".join([f"Usage: {program} {name}", *required(command.flags), *["[--options]"] * bool(command.flags)])
    if not any("section" in each for each in described.values()):
        options = rows(command.flags)
        return in_sections(usage, command.about, [("Options", options)] if options else [], width=width)
    found = option_sections.sections({each.key: row(each) for each in command.flags}, described, everything=everything)
    count = option_sections.further(described) * (not everything)
    ends = _wrapped(f"{program} {name} --help=all lists {count} further options.", width, "") if count else []
    examples = [f"{program} {each}" for each in command.examples]
    ends += ["", "Examples", *_examples(examples, width)] if examples else []
    return in_sections(usage, command.about, found, ends=ends, width=width)


def required(flags: Iterable[Flag]) -> list[str]:
    """Return what a command does not run without, as it is typed."""
    return [row(flag)[0] for flag in flags if flag.positional or flag.required]


def rows(flags: Iterable[Flag]) -> list[Row]:
    """Return every option with its text: words without a flag first, then by letter, those with a short form last."""
    return [row(flag) for flag in sorted(flags, key=_order)]


def row(flag: Flag) -> Row:
    """Return an option as it is typed, with what stands for its value, and its text."""
    if flag.positional:
        return flag.metavar, flag.help
    value = f"={flag.metavar}" * (flag.kind is not bool)
    value = f"[{value}]" if flag.optional else value
    short = [f"-{flag.short}{value.replace('=', ' ')}"] if flag.short else []
    return ", ".join([*short, f"--{flag.name}{value}"]), flag.help


def _order(flag: Flag) -> tuple[bool, bool, str, str]:
    word = flag.short or flag.name
    return not flag.positional, bool(flag.short), word.lower(), word.swapcase()


def in_sections(
    usage: str,
    about: str,
    sections: Sequence[tuple[str, Sequence[Row]]],
    *,
    ends: Sequence[str] = (),
    width: int,
) -> str:
    """Return the help of a task.

    Args:
        usage: how the task is called.
        about: what it does: paragraphs with empty lines between; line ends within one are not kept.
        sections: a title and its options.
        ends: lines after the options: where further ones are listed, and examples.
        width: columns of the terminal, of which the last one stays free.
    """
    lines = [*_wrapped(usage, width, ""), *_paragraphs(about, width)]
    column = _column([option for _, options in sections for option in options])
    for title, options in sections:
        lines += ["", *_wrapped(title, width, ""), *_options(options, width, column)]
    return "\n".join([*lines, *[""] * bool(ends), *ends])


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
    """Yield commands, with the remark on one behind it or, on a narrow terminal, in the line above."""
    for example in examples:
        command, _, remark = example.partition("   ")
        if width >= NARROW or not remark:
            yield INDENT + example
        else:
            yield from (f"{INDENT}# {remark.strip()}", INDENT + command)


def _paragraphs(about: str, width: int) -> Iterator[str]:
    for paragraph in filter(str.strip, re.split(r"\n\s*\n", about)):
        yield from ["", *_wrapped(paragraph, width, "")]


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
