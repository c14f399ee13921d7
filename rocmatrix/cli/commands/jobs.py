"""`./invokew train` and `smoke`: jobs, each in a cell's image or natively."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands import common
from rocmatrix.cli.commands.build import built_image
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Job as JobOptions
from rocmatrix.cli.options.common import Kept
from rocmatrix.diagnosis import explain_failure
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import LOGS, say, table
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.option import option

if TYPE_CHECKING:
    from rocmatrix.evidence.recorder import Place
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Event, Finished, Job
    from rocmatrix.runtime.trouble import Trouble

FIRST_SIGNAL = 128  # that a shell and an engine add to a signal's number
NEXT_RUN = "{run}"  # in the next commands of a `done` event: the run's folder


@command(
    Kept,
    job=JobOptions,
    trainer="train",
    about="Train on bars, a table or text: into TRAINING/<run>/, in the cell's image or natively, with the reason.",
    examples=(
        "train                                    the sample",
        "train --data=bars.csv --horizon=10 --epochs=20",
        "train --data=houses.csv --target=price   a column of a table",
        "train --task=lm --data=book.txt --max-steps=500",
        "train --gpu=gfx1100 --in=container --dry-run",
    ),
)
def train(job_request: JobRequest, _: Kept) -> None:
    """Run the main job, in a container or natively, and report which and why."""
    if (ended := run_and_record(job_request)) is None:
        return
    done, place = ended
    if done.status != 0:
        if not (done.has_usage_error or done.has_input_error or done.host_trouble):  # its own words are the cause
            explain(done, place)
        if (sudden := sudden_end(done)) is not None:
            say(sudden.render())
        sys.exit(done.exit_status)
    if (end := done.last("done")) is not None and not job_request.as_json:
        _print_end(end, job_request.output / end["run"], " --use-installed-torch" * job_request.use_installed_torch)


def sudden_end(done: Finished) -> RocmatrixError | None:
    """Return the error of a training that ended without one of its own; None where it reported one."""
    if done.last("error") is not None:
        return None
    number = -done.status if done.status < 0 else done.status - FIRST_SIGNAL
    named = signal.Signals(number).name if number in set(signal.Signals) else ""
    what = f"its process was ended by {named}" if named else f"its process ended with status {done.status}"
    start, why, advice = done.last("start"), "", ""
    if named == "SIGKILL":
        why = "the kernel ends a process so where memory runs out, and so does `kill -9`; it leaves no words"
        advice = (
            "`journalctl -k` names the kernel's reason; --data-fraction takes fewer rows, --feed mapped less memory. "
        )
    if start is not None:
        again = f"./invokew train --run {start['run']} --resume auto"
        advice += f"Checkpoints stay: {again} continues from the last one, or begins where there is none."
    return RocmatrixError("RM656", what=what, where=str(done.log or ""), why=why, next=advice)


def _print_end(end: Event, folder: Path, choice: str) -> None:
    """Print the run's folder on this machine and the next commands, on standard output: a pipe has them, too.

    Args:
        choice: flag behind each command, so that it takes the torch that trained; "" for the usual one.
    """
    place = shlex.quote(_from_here(folder))
    print(f"model   {place}")
    for each in end.get("next", ()):
        print(f"next    {each.replace(NEXT_RUN, place)}{choice}")
    sys.stdout.flush()


def _from_here(folder: Path) -> str:
    """Return a path as it is typed in the current folder."""
    return str(folder.relative_to(Path.cwd())) if folder.is_relative_to(Path.cwd()) else str(folder)


@dataclass(frozen=True, kw_only=True)
class Smoke(Kept):
    """Options of `smoke` next to those of every job."""

    probe: Sequence[str] = option("one probe, may be repeated (default: all)", default=(), metavar="PROBE")
    timeout: str = option("seconds for each probe (default: each probe's own limit, see --list)", metavar="SECONDS")
    listing: bool = option(
        "list the probes with the cards they take and their limits, and run none", default=False, typed="list"
    )

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What was asked of the trainer's suite."""
        return {name: value for name in ("probe", "timeout") if (value := getattr(self, name))}


@command(
    Smoke,
    job=JobOptions,
    trainer="smoke",
    about="Test that card, libraries and torch compute correctly: on one card and on pairs; a missing result fails.",
)
def smoke(job_request: JobRequest, args: Smoke) -> None:
    """Run the probes and print a table; a verdict that is neither a pass nor not applicable, or none, is a failure."""
    if args.listing:
        return list_probes(args.probe, as_json=job_request.as_json)
    if (ended := run_and_record(replace(job_request, options={**job_request.options, **args.chosen}))) is None:
        return
    done, place = ended
    if done.has_usage_error:  # told already
        sys.exit(done.exit_status)
    verdicts = [event for event in done.events if event.get("event") == "probe"]
    if not job_request.as_json:
        _print_verdicts(verdicts)
    failed = [v["probe"] for v in verdicts if v["status"] not in ("pass", "not-applicable")]
    if failed or not verdicts or done.status != 0:
        explain(done, place)
        what = f"not passed: {', '.join(failed)}" if failed else f"no verdict; the suite ended with {done.status}"
        raise RocmatrixError("RM208", what=what, where=str(done.log or ""))


def _print_verdicts(verdicts: Collection[Event]) -> None:
    rows = ((v["probe"], v["status"], f"{v.get('seconds', 0):.1f} s", v.get("summary", "")) for v in verdicts)
    table(("PROBE", "VERDICT", "TIME", "WHAT WAS SEEN"), rows)
    for name, trace in ((v["probe"], v["diagnosis"]) for v in verdicts if v.get("diagnosis")):
        say("\n".join([f"{name} was traced:", *(f"  {word + ':':<14} {found}" for word, found in trace.items())]))


def list_probes(names: Collection[str], *, as_json: bool = False) -> None:
    """Print the probes, or those that are named: the cards and seconds each may take, and what it proves."""
    from rocmatrix.runtime.paths import TRAINER_PROBES

    probes = json.loads(TRAINER_PROBES.read_text(encoding="utf-8"))
    known = [each["probe"] for each in probes]
    for name in names:
        if name not in known:
            raise RocmatrixError("RM404", what=f"no probe is called {name!r}", next=suggestion(name, known))
    selected = [each for each in probes if not names or {each["probe"], each["part_of"]} & {*names}]
    if as_json:
        print(json.dumps(selected, indent=1))
        return
    rows = ((each["probe"], str(each["cards"]), f"{each['timeout_seconds']:g} s", each["summary"]) for each in selected)
    table(("PROBE", "CARDS", "LIMIT", "WHAT IT PROVES"), rows)


def explain(done: Finished, place: Place) -> None:
    """Report why a job failed, as far as its log shows it, for the cell and the host that it ran on."""
    explain_failure.explain(explain_failure.reported(done), cell=place.cell, hardware=place.hardware)


def run_job(job_request: JobRequest) -> Finished | None:
    """Run a job as `run_and_record` does; return how it ended."""
    ended = run_and_record(job_request)
    return ended[0] if ended else None


def run_and_record(job_request: JobRequest) -> tuple[Finished, Place] | None:
    """Run a job, hand its events on and keep its log and record; None for a dry run, which prints the command.

    Returns how it ended, and where it ran. Raises RM207 where the engine did not start the program.
    """
    from rocmatrix.jobs import interactive, job
    from rocmatrix.jobs import log as job_log

    prepared, place = prepared_job(job_request)
    say(prepared.why)
    if job_request.dry_run:
        print(prepared.summary)
        return None
    log = job_log.place(LOGS, job_request.program.name, place.cell.image_name)
    with recorder.watched(job_request, place) as keep:
        show = common.event_printer(as_json=job_request.as_json)
        done = job.run(prepared.argv, environment=prepared.environment, show=show, log=log)
        keep(done)
    if done.trouble is not None:
        raise _of_the_host(done.trouble, started=done.status != interactive.NOT_STARTED)
    in_container = prepared.environment is None
    if in_container and not done.events and (error := interactive.refused(done.status)) is not None:
        explain(done, place)
        raise error
    return done, place


def _of_the_host(trouble: Trouble, *, started: bool) -> RocmatrixError:
    """Return the error of a job that states nothing of its cell."""
    return RocmatrixError("RM651" if started else "RM650", what=trouble.detail, where=f"the host: {trouble.stage}")


def prepared_job(job_request: JobRequest) -> tuple[Job, Place]:
    """Resolve the request, decide where it runs, and make that place ready."""
    from rocmatrix.evidence.recorder import Place
    from rocmatrix.jobs import job
    from rocmatrix.jobs.cards import requirement

    if (wheels := job_request.wheelhouse) and not Path(wheels).is_dir():  # a native run may need none; a typo is one
        advice = "Name the folder that holds the locked wheels, or leave --wheelhouse out."
        raise RocmatrixError("RM404", what="--wheelhouse names no folder", where=wheels, next=advice)
    matrix, hardware = common.known_matrix(), common.hardware_here()
    choice = common.choose(matrix, job_request.request, hardware, force=job_request.force)
    requirement.require_card(job_request.program, choice, hardware)
    job_request = requirement.with_cards_of_shell(job_request, cell=choice.cell, hardware=hardware)
    job_request = replace(job_request, forced=tuple(rule.id for rule in choice.forced))
    if job_request.use_installed_torch and job_request.where == "container":
        raise RocmatrixError("RM404", what="--use-installed-torch is for a native run, and --in container for an image")
    decision = job.decide("native" if job_request.use_installed_torch else job_request.where, hardware)
    say(f"runs {'in a container' if decision.where == 'container' else 'natively'}: {decision.why}")
    if decision.where == "container" or job_request.dry_run:  # a native run is refused as soon by the trainer itself
        common.require_settings(job_request)
    requested = job.requested_probes(job_request, cell=choice.cell, hardware=hardware)
    place = Place(cell=choice.cell, hardware=hardware, forced=bool(choice.forced), requested_probes=requested)
    if decision.where == "native":
        if not job_request.use_installed_torch:
            requirement.check_native_cards(job_request, cell=choice.cell, hardware=hardware)
        return job.native_job(job_request, matrix=matrix, cell=choice.cell, hardware=hardware), place
    job.check_cards(job_request, cell=choice.cell, hardware=hardware)
    built = built_image(choice, base=job_request.base, wheelhouse=job_request.wheelhouse, dry_run=job_request.dry_run)
    variables = job.allocator_of(job_request, matrix=matrix, cell=choice.cell)
    named = built.image.id if built.image else built.tag  # a dry run names the tag
    prepared = job.container_job(job_request, cell=choice.cell, hardware=hardware, image=named, variables=variables)
    held = (built.image.id, built.image.labels) if built.image else (None, None)
    return prepared, replace(place, where="container", image=held[0], labels=held[1])
