"""pip's resolution of requirements for an image's Python, which need not be this machine's.

Nothing is installed: pip reports what it would take.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rocmatrix.runtime.errors import RocmatrixError

# What the C library of every base runs. pip takes these names as they are and knows nothing of older ones.
_TAGS = (*(f"manylinux_2_{minor}" for minor in range(28, 16, -1)), "manylinux2014", "linux")
PLATFORMS = tuple(f"{tag}_x86_64" for tag in _TAGS)
# An index that cannot be reached has to be known in seconds; a slow one sends some bytes within ten.
PATIENCE = ("--retries", "1", "--timeout", "10")
REASON_LENGTH = 240
MOST_CAUSES = 8
WORKERS = 4  # each waits for the network most of the time
UNREACHABLE = "RM104"
_BROKEN = re.compile(r"connection broken by '.*?([^:'>]+)'\)?'")  # the last words of what pip quotes


@dataclass(frozen=True, kw_only=True)
class Question:
    """Request to pip. `index` and `links` come in addition to the sources this machine is configured with."""

    python: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    index: str | None = None
    links: str | None = None


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """One file that pip chose. An index may leave the hash out; the report then has none."""

    file: str
    name: str
    version: str
    url: str
    sha256: str | None


Answer = list[Resolved] | RocmatrixError


def query_all(questions: Iterable[Question]) -> dict[Question, Answer]:
    """Ask each question once. Those to one index are asked in turn, so that a dead one costs one wait."""
    groups: dict[str | Question, list[Question]] = {}
    for question in dict.fromkeys(questions):
        groups.setdefault(question.index or question, []).append(question)
    with ThreadPoolExecutor(WORKERS) as pool:
        return {question: answer for part in pool.map(_in_turn, groups.values()) for question, answer in part}


def _in_turn(group: list[Question]) -> list[tuple[Question, Answer]]:
    answers: list[tuple[Question, Answer]] = []
    dead: RocmatrixError | None = None
    for question in group:
        answer = dead or _answer(question)
        if isinstance(answer, RocmatrixError) and answer.code == UNREACHABLE:
            dead = answer
        answers.append((question, answer))
    return answers


def _answer(question: Question) -> Answer:
    try:
        return query(question)
    except RocmatrixError as error:
        return error


def query(question: Question) -> list[Resolved]:
    """Return the files pip chose. Raises RM104 where the index cannot be reached, RM105 where nothing fits."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in question.constraints), encoding="utf-8")
        argv = pip_argv(question, report=report, target=Path(scratch) / "target")
        done = subprocess.run([*argv, "--constraint", str(constraints)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise _refusal(question, done.stderr, conflict(done.stdout))
        return parse_report(json.loads(report.read_text(encoding="utf-8")))


def _refusal(question: Question, stderr: str, causes: list[str]) -> RocmatrixError:
    what = f"{question.requirements[0]} for Python {question.python}"
    if question.index and (broken := _BROKEN.search(stderr)):
        why = f"{question.index} cannot be reached: {broken[1].strip()}"
        return RocmatrixError(UNREACHABLE, what=what, where=question.index, why=why)
    return RocmatrixError("RM105", what=what, where=question.index or "", why="\n".join([reason(stderr), *causes]))


def conflict(stdout: str) -> list[str]:
    """Return which packages ask for what, where pip found that they exclude each other; it prints that as a message."""
    lines = iter(stdout.splitlines())
    for line in lines:
        if line.startswith("The conflict is caused by:"):
            return [each.strip()[:REASON_LENGTH] for each in takewhile(str.strip, lines)][:MOST_CAUSES]
    return []


def pip_argv(question: Question, *, report: Path, target: Path) -> list[str]:
    """Return the pip command that resolves for the image's Python and platform.

    Args:
        report: file that pip writes its report to.
        target: folder that pip would install to.
    """
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--progress-bar=off", "--ignore-installed", *PATIENCE]
    argv += [
        "--only-binary=:all:",
        "--report",
        str(report),
        "--target",
        str(target),
        *platform_options(question.python),
    ]
    argv += ["--extra-index-url", question.index] if question.index else []
    argv += ["--find-links", question.links] if question.links else []
    return [*argv, *question.requirements]


def platform_options(python: str) -> list[str]:
    """Return pip's options for the Python and the platform of the image."""
    options = ["--python-version", python, "--implementation", "cp"]
    options += [word for abi in (f"cp{python.replace('.', '')}", "abi3", "none") for word in ("--abi", abi)]
    return options + [word for platform in PLATFORMS for word in ("--platform", platform)]


def parse_report(report: dict[str, Any]) -> list[Resolved]:
    """Read pip's installation report (version 1): file name, version and sha256 of each choice."""
    return sorted((_parse_entry(entry) for entry in report["install"]), key=lambda row: row.file.lower())


def _parse_entry(entry: dict[str, Any]) -> Resolved:
    download = entry["download_info"]
    return Resolved(
        file=unquote(download["url"].rpartition("/")[2]),
        name=entry["metadata"]["name"],
        version=entry["metadata"]["version"],
        url=download["url"],
        sha256=download["archive_info"].get("hashes", {}).get("sha256"),
    )


def reason(stderr: str) -> str:
    """Pick from pip's lines what stood in the way: a broken connection, and the first error."""
    lines = stderr.splitlines() or ["pip gave no reason"]
    broken = [line.partition(" after ")[2] for line in lines if line.startswith("WARNING: Retrying")]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return "; ".join(line[:REASON_LENGTH] for line in [*broken[:1], *errors[:1]] or lines[-1:])
