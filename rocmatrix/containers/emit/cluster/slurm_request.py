"""Slurm settings of a site, next to nodes and cards: #SBATCH lines, and environment modules to load.

Source of the options: Slurm's manual of sbatch. Every value is checked, for sbatch reads a line's rest as options.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

WORD = re.compile(r"[A-Za-z0-9][\w.@+:/-]{0,99}", re.ASCII)
EXPRESSION = re.compile(r"[\w.,:&|\[\]()*@+=!-]{1,200}", re.ASCII)
MEMORY = re.compile(r"\d+(?:[KMGT]B?)?", re.IGNORECASE | re.ASCII)  # Slurm reads the first letter, in any case
# a type may begin with a digit (6900xt), and is no number
GPUS = re.compile(r"(?:(?P<type>(?=[\w.-]*[A-Za-z])\w[\w.-]*):)?(?P<count>[1-9]\d*)", re.ASCII)
FURTHER = re.compile(r"(?:--)?(?P<name>[a-z][a-z-]{1,30})(?:=(?P<value>[\w.,:&|\[\]()*@+=!/%-]{1,200}))?", re.ASCII)
# What the script needs as it has it: one task a node, one log, a login's environment, a signal and the queue.
# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, and the same behind days and a dash.
TIME = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|UNLIMITED|INFINITE", re.ASCII | re.IGNORECASE)
OF_THE_SCRIPT = re.compile(
    r"array|chdir|export(?:-file)?|get-user-env|input|job-name|(?:no-)?requeue|nodes|open-mode|output|parsable|propagate"
    r"|ntasks(?:-per-(?:core|gpu|node|socket))?|signal|test-only|wait|wrap"
)
OF_AN_OPTION = {
    "mem": "memory", "cpus-per-task": "cpus", "gpus": "cards", "gpus-per-task": "cards", "gpus-per-socket": "cards",
}  # fmt: skip
GRES_GPUS = re.compile(rf"(?:^|,)gpu:{GPUS.pattern}(?=,|$)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class SlurmRequest:
    """#SBATCH settings of a site. `gres` or `gpus_per_node` are in Slurm's own form and replace `gpu:COUNT`.

    `memory` is each node's, `cpus` are each node's (a node has one task, torchrun); `modules` are loaded first.
    `further` are other options of sbatch in its own words, such as `exclude=n7`.
    """

    partition: str | None = None
    time_limit: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    memory: str | None = None
    cpus: int | None = None
    gres: str | None = None
    gpus_per_node: str | None = None
    modules: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        partitions = (self.partition or "").split(",") if self.partition else ()  # a job takes the first that is free
        words = (*partitions, self.account, self.qos, self.reservation, *self.modules)
        _check(WORD, *words)
        _check(EXPRESSION, self.constraint, self.gres)
        _check_form("--memory", MEMORY, self.memory, "a size such as 64G")
        _check_form("--time", TIME, self.time_limit, "4:00:00, minutes, or days-hours such as 1-12")
        _check(GPUS, self.gpus_per_node)
        for word in self.further:
            _check_further(word)
        if self.cpus is not None and self.cpus < 1:
            raise ValueError(f"--cpus takes a whole number from 1, not {self.cpus}")
        if self.gres and self.gpus_per_node:
            raise ValueError("--gres and --gpus-per-node request the same cards twice; give one")
        if self.gres and "gpu:" in self.gres and not GRES_GPUS.search(self.gres):
            raise ValueError(f"{self.gres!r} names no number of cards, such as gpu:mi300x:8")

    @property
    def cards(self) -> int | None:
        """Cards of each node as `gres` or `gpus_per_node` count them, None where neither does."""
        found = GRES_GPUS.search(self.gres or "") or GPUS.fullmatch(self.gpus_per_node or "")
        return int(found["count"]) if found else None

    def options(self, cards: int) -> Iterator[str]:
        """Yield the options for `cards` cards a node."""
        if self.gpus_per_node:
            yield f"--gpus-per-node={self.gpus_per_node}"
        elif self.gres or cards:
            yield f"--gres={self.gres or f'gpu:{cards}'}"
        named = {
            "partition": self.partition,
            "time": self.time_limit,
            "account": self.account,
            "qos": self.qos,
            "reservation": self.reservation,
            "constraint": self.constraint,
            "mem": self.memory,
            "cpus-per-task": self.cpus,
        }
        yield from (f"--{name}={value}" for name, value in named.items() if value is not None)
        yield from (word if word.startswith("--") else f"--{word}" for word in self.further)

    @property
    def loading(self) -> tuple[str, ...]:
        """Lines that load the modules; /etc/profile defines `module` where a login has not."""
        if not self.modules:
            return ()
        words = shlex.join(self.modules)
        return (
            "command -v module >/dev/null || . /etc/profile",
            f'module load {words} || {{ echo "rocmatrix RM425: {words}: not loaded on $(hostname)" >&2; exit 1; }}',
        )


def _check(pattern: re.Pattern[str], *words: str | None) -> None:
    for word in words:
        if word is not None and not pattern.fullmatch(word):
            raise ValueError(f"{word!r} is no plain word, as a line of #SBATCH needs it")


def _check_form(flag: str, pattern: re.Pattern[str], word: str | None, form: str) -> None:
    """Raise ValueError for a value that sbatch would refuse, with the flag and what it takes."""
    if word is not None and not pattern.fullmatch(word):
        raise ValueError(f"{flag} takes {form}, not {word!r}")


def _check_further(word: str) -> None:
    """Raise ValueError for what is no option of sbatch, is the script's own, or has an option of this program."""
    found = FURTHER.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no option of sbatch such as exclude=n7 or exclusive")
    name = found["name"]
    if OF_THE_SCRIPT.fullmatch(name):
        raise ValueError(f"--{name} is set by the script that is submitted, which would not work otherwise")
    own = OF_AN_OPTION.get(name, name.replace("-", "_"))
    if name in OF_AN_OPTION or own in SlurmRequest.__dataclass_fields__ or name == "time":
        raise ValueError(f"{word!r} has an option of its own here: --{own.replace('_', '-')}")
