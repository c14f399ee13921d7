"""The record of scores: written, read, and held against the source as it is."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

from benchmarks.mutants.plan import ROOT, modules, read
from benchmarks.mutants.trial import KILLED, Trial

RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
NEEDED = 90.0  # percent of the mutants that are not equal to the original


def recorded() -> dict[str, Any]:
    """Return the record, empty where there is none."""
    if not RESULT.exists():
        return {"modules": {}, "named": []}
    found: dict[str, Any] = json.loads(RESULT.read_text())
    return found


def keep_module(trial: Trial) -> None:
    """Put a module's outcome into the record."""
    record = recorded()
    record["modules"][trial.module.path] = entry(trial)
    write(record)


def keep_named(found: list[dict[str, Any]]) -> None:
    """Put the outcome of the mutants written by hand into the record."""
    write({**recorded(), "named": found})


def write(record: dict[str, Any]) -> None:
    """Write the record with the machine and the tool that made it."""
    about = {
        "tool": f"mutmut {version('mutmut')}",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }
    RESULT.write_text(json.dumps({**record, **about}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def function_of(name: str) -> str:
    """Return the function's name from mutmut's name of a mutant."""
    return name.rpartition(".")[-1].partition("__mutmut")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")


def entry(trial: Trial) -> dict[str, Any]:
    """Return what is kept of a module: counts, the score, and each survivor with the reason why it is equal."""
    reasons = equal(trial.module.path)
    survivors = [
        {"function": function_of(mutant["name"]), "change": mutant["change"]}
        for mutant in trial.mutants
        if mutant["status"] not in KILLED
    ]
    for found in survivors:
        found["equal"] = reasons.get((found["function"], *found["change"]), "")
    count, equals = len(trial.mutants), sum(bool(found["equal"]) for found in survivors)
    killed = count - len(survivors)
    return {
        "source": trial.source,
        "tests": list(trial.module.tests),
        "mutants": count,
        "killed": killed,
        "equal": equals,
        "score": round(100 * killed / (count - equals), 1) if count > equals else 100.0,
        "seconds": trial.seconds,
        "survivors": survivors,
    }


def equal(path: str) -> dict[tuple[str, ...], str]:
    """Return the reasons of equal.toml by function and change."""
    found = read("equal.toml").get(path, [])
    return {(each["function"], *each["change"]): each["reason"] for each in found}


def stale(record: dict[str, Any]) -> list[str]:
    """Return a line for every module whose score is of another source, or that has none."""
    known = record["modules"]
    missing = [f"{module.path}: never run" for module in modules() if module.path not in known]
    changed = [m.path for m in modules() if m.path in known and known[m.path]["source"] != m.source]
    return missing + [f"{path}: changed since it was run" for path in changed]


def good(record: dict[str, Any]) -> bool:
    """Whether every score is high enough and every mutant written by hand is killed."""
    scores = [found["score"] >= NEEDED for found in record["modules"].values()]
    return all(scores) and all(found["killed"] for found in record["named"])


def table(record: dict[str, Any]) -> str:
    """Return the record as a Markdown table."""
    head = "| module | mutants | killed | equal | score | seconds |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    rows = [
        f"| `{path}` | {e['mutants']} | {e['killed']} | {e['equal']} | {e['score']:.1f} % | {e['seconds']:.0f} |"
        for path, e in record["modules"].items()
    ]
    named = [f"`{found['name']}`: {', '.join(found['killers']) or 'ALIVE'}" for found in record["named"]]
    return "\n".join([head, *rows, "", *named])
