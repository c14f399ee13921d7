"""The record of scores: written, read, and held against the source as it is."""

from __future__ import annotations

import fcntl
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from benchmarks.mutants.plan import ROOT, Module, modules, read
from benchmarks.mutants.source import changed, hash_of
from benchmarks.mutants.trial import KILLED, Trial

RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
PAGE = RESULT.with_suffix(".md")
LOCK = ROOT / ".rocmatrix" / "mutants.lock"
INTRODUCTION = """Written by `./invokew test --mutants`. A mutant is one change of the code, such as `<` to `<=` or an
argument left out; it is killed where a test of its module fails. Equal are those that change no behaviour, each with
its reason below. Left out of the count are the words of messages (`what`, `where`, `why`, `next`, `hint`, `words` and
`reason`, and the letters of a literal with a blank in it) and the names of codecs. `python -m benchmarks.mutants
--stale` lists the scores that are of another source."""
NEEDED = 90.0  # percent of the mutants that are not equal to the original


def recorded() -> dict[str, Any]:
    """Return the record, empty where there is none."""
    if not RESULT.exists():
        return {"modules": {}, "named": []}
    found: dict[str, Any] = json.loads(RESULT.read_text())
    return found


@contextmanager
def locked() -> Iterator[None]:
    """Let one program at a time read and write the record: modules may be run next to each other."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@locked()
def keep_module(trial: Trial) -> None:
    """Put a module's outcome into the record."""
    record = recorded()
    before = record["modules"].get(trial.module.path, {"survivors": [], "seconds": 0.0})
    made = entry(trial, survived=[(each["function"], each["change"]) for each in before["survivors"]])
    if any(mutant["status"] == "kept" for mutant in trial.mutants):  # the time of the whole run counts as well
        made["seconds"] = round(made["seconds"] + before["seconds"], 1)
    record["modules"][trial.module.path] = made
    write(record)


def to_try_again(module: Module) -> dict[str, Any]:
    """Return the changes on record that no test saw, and the functions that were changed since, or use what was.

    Ends the program where the source of that run is no version of the module that git knows, or was recorded under
    another Python.
    """
    if reason := other_python(recorded()):
        sys.exit(reason)
    entry = recorded()["modules"].get(module.path, {"source": None})
    before = next((text for text in versions_of(module) if hash_of(text) == entry["source"]), None)
    if before is None:
        sys.exit(f"{module.path} was never run, or in a version that git does not know: run it whole")
    functions = changed(before, (ROOT / module.path).read_bytes())
    return {"changes": [each["change"] for each in entry["survivors"] if not each["equal"]], "functions": functions}


def versions_of(module: Module) -> Iterator[bytes]:
    """Yield the module as it is, and as each commit has it, newest first."""
    yield (ROOT / module.path).read_bytes()
    commits = ["git", "log", "--format=%H", "--", module.path]
    for commit in subprocess.run(commits, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split():
        shown = subprocess.run(["git", "show", f"{commit}:{module.path}"], cwd=ROOT, check=False, capture_output=True)
        if shown.returncode == 0:
            yield shown.stdout


def reapply(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with the reasons that equal.toml holds now."""
    for path, entry in list(record["modules"].items()):
        record["modules"][path] = entry | judged(path, entry["mutants"], entry["survivors"])
    return record


@locked()
def keep_named(found: list[dict[str, Any]]) -> None:
    """Put the outcome of the mutants written by hand into the record."""
    write({**recorded(), "named": found})


def write(record: dict[str, Any]) -> None:
    """Write the record with the machine and the tool that made it, and as a page."""
    about = {
        "tool": f"mutmut {version('mutmut')}",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }
    made = {**record, **about}
    RESULT.write_text(json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    PAGE.write_text(page(made))


def function_of(name: str) -> str:
    """Return the function's name from mutmut's name of a mutant."""
    return name.rpartition(".")[-1].partition("__mutmut")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")


def entry(trial: Trial, *, survived: Sequence[tuple[str, list[str]]] = ()) -> dict[str, Any]:
    """Return what is kept of a module: counts, the score, and each survivor with the reason why it is equal.

    `survived` are those of the run before: one that was not tried again still lives.
    """
    found = [(function_of(each["name"]), each["change"], each["status"]) for each in trial.mutants]
    survivors = [
        {"function": function, "change": change}
        for function, change, status in found
        if status not in KILLED or (status == "kept" and (function, change) in survived)
    ]
    about = {"source": trial.source, "tests": list(trial.module.tests), "seconds": trial.seconds}
    return about | judged(trial.module.path, len(trial.mutants), survivors)


def judged(path: str, count: int, survivors: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts and the score of `count` mutants, and the survivors with their reasons."""
    reasons = equal(path)
    found = [{**each, "equal": reasons.get((each["function"], *each["change"]), "")} for each in survivors]
    equals, killed = sum(bool(each["equal"]) for each in found), count - len(found)
    score = round(100 * killed / (count - equals), 1) if count > equals else 100.0
    return {"mutants": count, "killed": killed, "equal": equals, "score": score, "survivors": found}


def equal(path: str) -> dict[tuple[str, ...], str]:
    """Return the reasons of equal.toml by function and change."""
    found = read("equal.toml").get(path, [])
    return {(each["function"], *each["change"]): each["reason"] for each in found}


def stale(record: dict[str, Any]) -> list[str]:
    """Return a line for every module whose score is of another source, or that has none.

    Under another Python than the record's, the one line states that: sources are compared as trees, which differ.
    """
    if reason := other_python(record):
        return [reason]
    known = record["modules"]
    missing = [f"{module.path}: never run" for module in modules() if module.path not in known]
    changed = [m.path for m in modules() if m.path in known and known[m.path]["source"] != m.source]
    return missing + [f"{path}: changed since it was run" for path in changed]


def other_python(record: dict[str, Any]) -> str:
    """Return why sources cannot be compared with the record's here, empty where they can."""
    made, here = (_minor(text) for text in (record.get("machine", ""), platform.python_version()))
    if made in ("", here):
        return ""
    return f"the scores were recorded under Python {made}, and this is {here}: sources cannot be compared"


def _minor(text: str) -> str:
    """Return "3.11" of "x86_64, Python 3.11.7" and of "3.11.7"; empty where no version ends the text."""
    found = re.search(r"(\d+\.\d+)\.\d+\S*$", text)
    return found[1] if found else ""


def good(record: dict[str, Any]) -> bool:
    """Whether every score is high enough and every mutant written by hand is killed."""
    scores = [found["score"] >= NEEDED for found in record["modules"].values()]
    return all(scores) and all(found["killed"] for found in record["named"])


def table(record: dict[str, Any]) -> str:
    """Return the scores as a Markdown table."""
    head = "| module | mutants | killed | equal | score | seconds |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    rows = [
        f"| `{path}` | {e['mutants']} | {e['killed']} | {e['equal']} | {e['score']:.1f} % | {e['seconds']:.0f} |"
        for path, e in sorted(record["modules"].items())
    ]
    return "\n".join([head, *rows])


def page(record: dict[str, Any]) -> str:
    """Return the record as a Markdown page: scores, named mutants with what killed them, survivors with reasons."""
    parts = [f"# Mutants\n\n{INTRODUCTION}\n\nMade with {record['tool']} on {record['machine']}.", table(record)]
    if never := [f"`{module.path}`" for module in modules() if module.path not in record["modules"]]:
        parts.append(f"Listed in modules.toml and not run yet: {', '.join(never)}.")
    named = [f"| `{n['name']}` | `{n['module']}` | {killer(n)} |" for n in record["named"]]
    parts += ["## Written by hand", "\n".join(["| mutant | module | killed by |", "| --- | --- | --- |", *named])]
    parts.append("## Survivors")
    for path, entry in sorted(record["modules"].items()):
        if entry["survivors"]:
            parts.append("\n\n".join([f"### `{path}`", *map(survivor_text, entry["survivors"])]))
    return "\n\n".join(parts) + "\n"


def killer(mutant: dict[str, Any]) -> str:
    """Return the first test that killed a mutant, and how many more did."""
    if not mutant["killed"]:
        return "**alive**"
    first, *others = mutant["killers"] or ["an error while the tests were read"]
    return f"`{first}`" + (f" and {len(others)} more" if others else "")


def survivor_text(survivor: dict[str, Any]) -> str:
    """Return a survivor with its reason."""
    lines = "\n".join(survivor["change"])
    return f"`{survivor['function']}`: {survivor['equal'] or '**no test sees it**'}\n\n```diff\n{lines}\n```"
