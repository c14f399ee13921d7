"""Settings as a command line shows them: flags for argparse, the help of `train`, and a list for the host program."""

from __future__ import annotations

import shutil
import textwrap
from argparse import SUPPRESS
from collections.abc import Iterable
from typing import Any

from trainer.config import synonyms
from trainer.config.sections.bars import FeaturesConfig
from trainer.config.sections.run import BY_HOST
from trainer.config.setting import Setting, settings_of, shown
from trainer.config.train import FAMILIAR, settings

WIDTH, COLUMN = 80, 26  # of a line of help at most, and where its text begins
OUTSIDE: tuple[dict[str, Any], ...] = (  # options of `train` that are not settings themselves, but give some
    {"name": "recipe", "kind": "text", "help": "settings from a file, by name or path; see recipes/", "type": "FILE"},
    {
        "name": "set",
        "kind": "list",
        "help": "one setting, as section.name=value; may be repeated",
        "type": "SECTION.NAME=VALUE",
    },
)
ADVICE = "advice"  # stands for the command in entries on flags of other programs that are not taken as they are
OUTSIDE_TITLE = "Recipe"
ABOUT = "Train on price bars, a table or text, and write a run folder."
RANK = "A flag or --set wins over the recipe, and the recipe over the default."
EXAMPLES = (
    "trainer train                                      the sample, 300 epochs",
    "trainer train --data bars.csv --horizon 10 --epochs 20",
    "trainer train --data houses.csv --target price     a column of a table",
    "trainer train --task lm --data book.txt --max-steps 500",
    "trainer train --run nightly --resume auto          start the run, or resume it",
)


def flags(listed: Iterable[Setting]) -> list[tuple[str, dict[str, Any]]]:
    """Return each setting as a flag and the keyword arguments of argparse's add_argument.

    A flag that is not given leaves no trace, so that a recipe's value is not taken for overridden.
    """
    return [(setting.flag, _argument(setting)) for setting in listed]


def _argument(setting: Setting) -> dict[str, Any]:
    switch = {"nargs": "?", "const": True} if setting.is_switch else {}
    return {
        "type": setting.parse,
        "default": SUPPRESS,
        "help": help_of(setting).replace("%", "%%"),
        "dest": setting.name,
        "metavar": setting.about.parse.metavar,
        **switch,
    }


def help_of(setting: Setting) -> str:
    """Return the help of a setting with its default."""
    default = getattr(setting.default, "name", setting.default)
    words = "" if default is None or default is False or default == () else f" (default: {shown(default)})"
    return setting.about.help + words


def options() -> list[dict[str, Any]]:
    """Return what a person may give to a command, for the host program.

    kind: text, flag or list. type: what help shows for a value. section: the title under which help lists it.
    common: whether help lists it without being asked for all. Entries of the command `ADVICE` are no options.
    """
    outside = [{"command": "train", **each, "section": OUTSIDE_TITLE, "common": True} for each in OUTSIDE]
    features = settings_of(FeaturesConfig).values()
    few = [{**each, "common": True} for each in _options("features", features)]
    advice = [{"command": ADVICE, "name": name, "help": text} for name, text in synonyms.OTHERWISE.items()]
    return [*outside, *_options("train", typed()), *few, *advice]


def typed() -> list[Setting]:
    """Return the settings of `train` that a person gives, without those of the host program."""
    return [each for each in settings().values() if each.about.recipe != BY_HOST]


def _options(command: str, listed: Iterable[Setting]) -> list[dict[str, Any]]:
    return [
        {
            "command": command,
            "name": each.name,
            "kind": "flag" if each.is_switch else "text",
            "help": help_of(each),
            "type": each.about.parse.metavar,
            "section": each.title,
            "common": each.about.common,
            **(_synonyms(each.name) if command == "train" else {}),
        }
        for each in listed
    ]


def _synonyms(name: str) -> dict[str, dict[str, str]]:
    """Return flags of other programs for the host program: `also`, with a value for switches."""
    pairs = ((other, ours.partition("=")) for other, ours in synonyms.SAME.items())
    also = {other: value for other, (ours, _, value) in pairs if ours == name}
    return {"also": also} if also else {}


def train_help(*, everything: bool) -> str:
    """Return the help of `train`: the common settings section by section, and where asked for, all others."""
    width = min(WIDTH, shutil.get_terminal_size().columns)
    own = [each for each in options() if each["command"] == "train"]
    parts = ["usage: trainer train [--SETTING VALUE ...]\n", *textwrap.wrap(ABOUT, width), *textwrap.wrap(RANK, width)]
    parts += [*_sections([each for each in own if each["common"]], width)]
    if everything:
        parts += ["", "FURTHER SETTINGS", *_sections([each for each in own if not each["common"]], width)]
        familiar = " ".join(f"--{name.replace('_', '-')}: {why}." for name, why in FAMILIAR.items())
        parts += ["", *textwrap.wrap(f"Accepted for compatibility, without effect. {familiar}", width)]
    else:
        further = sum(not each["common"] for each in own)
        parts += ["", f"--help=all lists {further} further settings."]
    return "\n".join([*parts, "", "Examples", *(f"  {each}" for each in EXAMPLES)]) + "\n"


def _sections(listed: list[dict[str, Any]], width: int) -> list[str]:
    lines: list[str] = []
    for title in dict.fromkeys(each["section"] for each in listed):
        lines += ["", title, *(line for each in listed if each["section"] == title for line in _lines(each, width))]
    return lines


def _lines(option: dict[str, Any], width: int) -> list[str]:
    """Return an option's lines: its flag and type, and its help next to them or, where they are long, below."""
    value = f"[={option['type']}]" if option["kind"] == "flag" else f" {option['type']}"
    head = f"  --{option['name'].replace('_', '-')}{value}"
    text = textwrap.wrap(option["help"], width - COLUMN, break_long_words=False, break_on_hyphens=False)
    if len(head) > COLUMN - 2:
        return [head, *(" " * COLUMN + line for line in text)]
    return [head.ljust(COLUMN) + text[0], *(" " * COLUMN + line for line in text[1:])]
