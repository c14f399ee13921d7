"""Heredocs of a script: the files that it writes with them, and the script without what is no shell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

_OPENED = re.compile(r"(?<!<)<<(?P<tabs>-?)\s*(?P<quote>[\"']?)(?P<ending>[A-Za-z_]\w*)(?P=quote)(?!\w)")
_TARGET = re.compile(
    r"(?:(?<![0-9&])>{1,2}\|?|\btee\s+(?:-a\s+|--append\s+)?)\s*[\"']?(?P<file>[^\s\"'|;&<>()]{1,300})"
)
# what reads a heredoc as shell: an interpreter, another host, a scheduler, a container
_READ_BY_SHELL = re.compile(r"\b(?:ba|z|da|k)?sh\b|\b(?:ssh|su|sbatch|qsub|bsub|srun|exec)\b")
_SHELL_FILE = re.compile(r"\.(?:sh|bash|zsh|sbatch|slurm|job|pbs|lsf|profile|bashrc)$|\bprofile\.d/")
_SHELL_TEXT = re.compile(r"\A\s*#!|^#(?:SBATCH|PBS|BSUB)\b", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Heredoc:
    """A heredoc: the file it is written to ("" for none), its text below as many empty lines as stand before it."""

    target: str
    text: str
    first: int
    last: int
    shell: bool

    @property
    def name(self) -> str:
        """The name of the file that is written, without its folder."""
        return self.target.rstrip("/").rpartition("/")[2]


def heredocs(script: str) -> Iterator[Heredoc]:
    """Yield the heredocs of a script, those whose last line is there, in their order."""
    rows = script.splitlines()
    places: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        places.setdefault(row.lstrip("\t"), []).append(number)
    at = 0
    while at < len(rows):
        opened = None if rows[at].lstrip().startswith("#") else _OPENED.search(rows[at])
        end = _end(rows, at, opened, places) if opened else None
        if opened and end is not None:
            yield _heredoc(rows, at, end, opened)
            at = end
        at += 1


def _end(rows: list[str], at: int, opened: re.Match[str], places: Mapping[str, Sequence[int]]) -> int | None:
    """Return where a heredoc ends; None where no line does so, as in arithmetic with <<."""
    behind = places.get(opened["ending"], ())
    ends = islice(behind, bisect_right(behind, at), None)
    return next((n for n in ends if opened["tabs"] or rows[n] == opened["ending"]), None)


def _heredoc(rows: list[str], at: int, end: int, opened: re.Match[str]) -> Heredoc:
    body = rows[at + 1 : end]
    if opened["tabs"]:
        body = [row.lstrip("\t") for row in body]
    if not opened["quote"]:  # the shell takes one backslash away
        body = [row.replace("\\$", "$").replace("\\`", "`") for row in body]
    text = "\n".join(body)
    files = [match["file"] for match in _TARGET.finditer(rows[at]) if match["file"] != "/dev/null"]
    target = files[0] if files else ""
    read = not target and bool(_READ_BY_SHELL.search(rows[at][: opened.start()]))
    shell = read or bool(_SHELL_FILE.search(target)) or bool(_SHELL_TEXT.search(text))
    return Heredoc(target=target, text="\n" * (at + 1) + text + "\n", first=at + 2, last=end, shell=shell)


def without_other_texts(script: str) -> str:
    """Return a script of as many lines, in which what heredocs hold besides shell is left out."""
    rows = script.splitlines(keepends=True)
    for one in heredocs(script):
        if not one.shell:
            for number in range(one.first - 1, one.last):
                rows[number] = "\n"
    return "".join(rows)
