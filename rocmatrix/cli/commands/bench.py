"""`./invokew bench`: what the trainer's benchmarks measured, in a cell's image or natively, as a table or as JSON."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import jobs
from rocmatrix.cli.commands.common import print_json
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Job, Kept
from rocmatrix.jobs.programs import BENCH
from rocmatrix.runtime.console import say, table
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option

if TYPE_CHECKING:
    from rocmatrix.evidence.figure import Figure
    from rocmatrix.evidence.recorder import Place
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Event, Finished

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Bench(Kept):
    """Options of `bench` next to those of every job."""

    as_json: bool = option("print the figures as JSON, for programs", default=False, typed="json")


@command(
    Bench,
    job=Job,
    trainer=BENCH.name,
    about="Benchmark this machine: matrix products, memory, copies, training steps, all-reduce; medians with spreads.",
)
def bench(job_request: JobRequest, args: Bench) -> None:
    """Run the benchmarks and show their figures. Raises RM612 where one failed; the others' figures stand."""
    from rocmatrix.evidence import figure, from_events

    if (ended := jobs.run_and_record(job_request)) is None:
        return
    done, place = ended
    if done.last("error"):  # wrong usage, told already
        sys.exit(done.exit_status)
    verdicts = [event for event in done.events if event.get("event") == "probe"]
    figures = figure.figures(from_events.numbers_of(verdicts))
    if args.as_json:
        print_json(_described(done, place, verdicts, figures))
    elif figures:
        table(figure.COLUMNS, (each.row for each in figures))
    for verdict in verdicts:
        if verdict["status"] != "pass":
            say(f"{verdict['probe']}: {verdict['status']}. {verdict.get('summary', '')}")
    if not done.inapplicable:
        say(f"measured on: {_ran_on(done)}; a bench raises no level of support")
    _judge(done, place, verdicts)


def _ran_on(done: Finished) -> str:
    return str((done.last(BENCH.name) or {}).get("ran_on") or "an unknown device: the bench did not reach its end")


def _described(done: Finished, place: Place, verdicts: list[Event], figures: tuple[Figure, ...]) -> dict[str, object]:
    """Return the figures as plain data."""
    return {
        "schema": SCHEMA,
        "cell": place.cell.name,
        "where": place.where,
        "ran_on": _ran_on(done),
        "verdicts": {verdict["probe"]: verdict["status"] for verdict in verdicts},
        "figures": [asdict(each) for each in figures],
        "log": str(done.log) if done.log else None,
    }


def _judge(done: Finished, place: Place, verdicts: list[Event]) -> None:
    if done.inapplicable:
        say("nothing of what was chosen can be measured here; `./invokew bench` without --only measures what can be")
        return
    failed = [f"{v['probe']} ({v['status']})" for v in verdicts if v["status"] not in ("pass", "not-applicable")]
    if not failed and verdicts and done.status == 0:
        return
    jobs.explain(done, place)
    what = f"failed: {', '.join(failed)}" if failed else f"nothing was measured; the bench ended with {done.status}"
    raise RocmatrixError("RM612", what=what, where=str(done.log or ""))
