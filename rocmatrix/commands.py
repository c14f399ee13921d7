"""What the tasks call: each command joins the rooms of this package and talks to the person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.console import ROOT, edge, say, show, table
from rocmatrix.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.hardware import Hardware
    from rocmatrix.job import Prepared, Wanted
    from rocmatrix.launch import Event, Finished
    from rocmatrix.matrix import Matrix
    from rocmatrix.resolve import Choice, Request

CPU = "cpu"
PIN_FILES = ("base", "dev")


@edge
def render(*, check: bool) -> None:
    """Write every generated file, or compare them with what is committed."""
    from rocmatrix import render as rendering

    matrix = _matrix()
    if check:
        say(f"{rendering.check(matrix, ROOT)} generated files agree with matrix.yaml")
        return
    touched = rendering.write(matrix, ROOT)
    say("\n".join([f"{len(touched)} files written or removed", *touched]))


@edge
def lock(*, cell: str | None, everything: bool, upgrade: bool) -> None:
    """Resolve the wheels of releases again and render what depends on them. Raises RM109 when some stay unlocked."""
    from rocmatrix import lock as locking
    from rocmatrix import render as rendering

    matrix = _matrix()
    targets = locking.cell_targets(matrix, cell) if cell else None
    result = locking.lock(matrix, ROOT, targets=locking.all_targets(matrix) if everything else targets, upgrade=upgrade)
    rendering.write(_matrix(), ROOT)
    for target in result.done:
        say(f"locked {target.words}")
    if result.failed:
        raise RocmatrixError("RM109", what=result.failures)


@edge
def pins() -> None:
    """Compile requirements/*.in into hash-locked requirements/*.txt."""
    from rocmatrix import native

    native.install_requirements(ROOT, "dev")
    for name in PIN_FILES:
        argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        argv += ["--python-version", "3.11", "--custom-compile-command", "./invokew pins"]
        argv += [f"{name}.in", "--output-file", f"{name}.txt"]
        if subprocess.run(argv, cwd=ROOT / "requirements", check=False).returncode:
            raise RocmatrixError("RM105", what=f"requirements/{name}.in could not be resolved")


@edge
def cells() -> None:
    """List the cells with their axes."""
    rows = (
        (cell.name, cell.architecture or "-", cell.release.rocm or "-", cell.release.torch, cell.python, cell.why)
        for cell in _matrix().cells
    )
    table(("CELL", "GPU", "ROCM", "TORCH", "PYTHON", "WHY"), rows)


@edge
def explain(request: Request, *, as_json: bool) -> None:
    """Print the argument for a request; a refusal is an argument too, and ends with status 0."""
    from rocmatrix import argument

    argued = argument.argue(_matrix(), request, today=_today(), cards=_hardware().architectures)
    if as_json:
        _print_json(argued.described())
        return
    from rocmatrix import terminal

    show(terminal.argument(argued), width=terminal.PROSE_WIDTH)


@edge
def matrix(*, as_json: bool, html: Path | None) -> None:
    """Print the grid, or write it to `html` as a page with the argument behind each square."""
    from rocmatrix import grid

    known = _matrix()
    whole = grid.grid(known)
    if html is not None:
        from rocmatrix import page

        _write_page(html, page.page(known, whole, today=_today()))
        say(f"{html}: {html.stat().st_size / 1e6:.1f} MB, {len(whole.rows)} x {len(whole.releases)} squares")
    if as_json:
        _print_json(whole.described())
    elif html is None:
        from rocmatrix import terminal

        show(terminal.grid(whole), width=terminal.GRID_WIDTH)


@edge
def outdated(*, online: bool, as_json: bool) -> None:
    """List what asks to be looked at again; indexes are asked only where a person says so."""
    from rocmatrix import outdated as aging

    known = _matrix()
    answers = [aging.ask(known, index) for index in aging.indexes(known)] if online else []
    found = aging.outdated(known, today=_today(), answers=answers)
    if as_json:
        _print_json(found.described())
        return
    say(f"{len(found.expired)} rules are past their day on {found.today}")
    if found.expired:
        table(("RULE", "EXPIRED", "SOURCE"), ((r.id, r.expires, r.evidence.words) for r in found.expired))
    say(f"{len(found.newer)} releases are newer than a recommended one and not known to be broken there")
    rows = ((n.architecture or "-", n.recommended, n.release, n.verdict, n.cell or "-") for n in found.newer)
    table(("GPU", "RECOMMENDED", "NEWER", "VERDICT", "CELL"), rows)
    for answer in found.answers:
        news = answer.unheard_because and f"not heard: {answer.unheard_because}"
        say(f"{answer.index}: {news or ', '.join(answer.unknown) or 'nothing newer than the matrix knows'}")


@edge
def build(
    *,
    request: Request,
    base: str | None,
    wheelhouse: str | None,
    dry_run: bool,
    allow_unlocked: bool,
    force: bool = False,
    companions: str = "",
) -> None:
    """Build the image of the cell that a request resolves to, with companion packages where some are named.

    `force` overrides a rule that calls the cell broken.
    """
    matrix = _matrix()
    choice = _choose(matrix, request, _hardware(), force=force)
    if companions:
        from rocmatrix import companion_lock

        names = [name.strip() for name in companions.split(",")]
        choice = replace(choice, cell=companion_lock.prepare(matrix, choice.cell, names, ROOT))
    _build(choice, base=base, wheelhouse=wheelhouse, dry_run=dry_run, allow_unlocked=allow_unlocked)


@edge
def train(wanted: Wanted) -> None:
    """Run the main job, in a container or natively, and say which and why."""
    done = _run(wanted)
    if done is None:
        return
    if done.status != 0:
        sys.exit(done.status)
    if (end := done.last("done")) is not None:
        say(f"model   {wanted.output / end['run']}")


@edge
def smoke(wanted: Wanted) -> None:
    """Run the probes and print a table; any verdict but a pass, or none at all, is a failure."""
    done = _run(wanted)
    if done is None:
        return
    verdicts = [event for event in done.events if event.get("event") == "probe"]
    rows = ((v["probe"], v["status"], f"{v.get('seconds', 0):.1f} s", v.get("summary", "")) for v in verdicts)
    table(("PROBE", "VERDICT", "TIME", "WHAT WAS SEEN"), rows)
    failed = [v["probe"] for v in verdicts if v["status"] != "pass"]
    if failed or not verdicts or done.status != 0:
        what = f"not passed: {', '.join(failed)}" if failed else f"no verdict; the suite ended with {done.status}"
        raise RocmatrixError("RM208", what=what)


@edge
def test(*, paths: str, only: str) -> None:
    """Run every test this machine can run; the last lines count what was left out and why."""
    from rocmatrix import native

    native.install_requirements(ROOT, "dev")
    matrix = _matrix()
    runner = native.prepare(matrix, ROOT, cell=None)
    argv = [runner.python, "-m", "pytest", *paths.split()] + (["-k", only] if only else [])
    environment = {**os.environ, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    sys.exit(subprocess.run(argv, cwd=ROOT, env=environment, check=False).returncode)


@edge
def lint() -> None:
    """Run the linter, the formatter's check, the type checker and the drift check."""
    from rocmatrix import native

    native.install_requirements(ROOT, "dev")
    native.prepare(_matrix(), ROOT, cell=None)
    for argv in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        say("$ " + " ".join(argv))
        if subprocess.run([sys.executable, "-m", *argv], cwd=ROOT, check=False).returncode:
            sys.exit(1)
    render(check=True)


def _matrix() -> Matrix:
    from rocmatrix import matrix_file

    return matrix_file.load(ROOT)


def _today() -> str:
    return date.today().isoformat()


def _write_page(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        advice = "Give --html a file in a folder that exists."
        raise RocmatrixError("RM206", what=str(error.strerror), where=str(path), next=advice) from error


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def _hardware() -> Hardware:
    from rocmatrix import hardware

    return hardware.detect()


def _choose(matrix: Matrix, request: Request, hardware: Hardware, *, force: bool = False) -> Choice:
    from rocmatrix import resolve

    choice = resolve.resolve(matrix, request, cards=hardware.architectures, force=force)
    say(f"cell: {choice.cell.name} ({choice.why})")
    for rule in choice.forced:
        say(f"  FORCED against rule {rule.id}: {rule.words} ({rule.evidence.words})")
    for other in choice.passed_over:
        say(f"  passed over {other.cell}: {other.why}")
    return choice


def _build(
    choice: Choice, *, base: str | None, wheelhouse: str | None, dry_run: bool, allow_unlocked: bool = False
) -> str:
    from rocmatrix import build as building
    from rocmatrix import render as rendering

    cell = choice.cell
    if choice.forced and not (ROOT / "images" / cell.name).is_dir():
        # Even for a dry run: the command that it prints names this folder.
        rendering.write_recipe(cell, building.made_recipe(cell, ROOT))
    built = building.build(
        cell,
        root=ROOT,
        base=base,
        wheelhouse=Path(wheelhouse).resolve() if wheelhouse else None,
        dry_run=dry_run,
        allow_unlocked=allow_unlocked,
        forced=[rule.id for rule in choice.forced],
    )
    say(built.words)
    return built.tag


def _run(wanted: Wanted) -> Finished | None:
    from rocmatrix import launch

    prepared = _prepared(wanted)
    say(prepared.why)
    if wanted.dry_run:
        print(prepared.words)
        return None
    return launch.run(prepared.argv, environment=prepared.environment, show=_show)


def _prepared(wanted: Wanted) -> Prepared:
    from rocmatrix import job

    matrix, hardware = _matrix(), _hardware()
    choice = _choose(matrix, wanted.request, hardware, force=wanted.force)
    decision = job.decide(wanted.where, hardware)
    say(f"runs {'in a container' if decision.where == 'container' else 'natively'}: {decision.why}")
    if decision.where == "native":
        return job.natively(wanted, matrix=matrix, cell=choice.cell, hardware=hardware)
    tag = _build(choice, base=wanted.base, wheelhouse=None, dry_run=wanted.dry_run)
    return job.in_container(wanted, cell=choice.cell, hardware=hardware, image=tag)


def _show(event: Event) -> None:
    """Hand a job's events on as JSON lines where standard output is read by a program."""
    if not sys.stdout.isatty() and event.get("event") not in ("probe", "smoke"):
        print(json.dumps(event), flush=True)
