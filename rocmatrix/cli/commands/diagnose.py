"""`./invokew diagnose`. Status 0: a known failure was found. 1: none was. 2: the log could not be read."""

from __future__ import annotations

import gc
import io
import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import known_matrix, print_json
from rocmatrix.cli.options.command import command
from rocmatrix.runtime import text_table
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option, positional
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.diagnosis.diagnosis import Diagnosis
    from rocmatrix.diagnosis.machine.host_report import HostReport
    from rocmatrix.diagnosis.ranking import HostContext
    from rocmatrix.diagnosis.signature import Signature
    from rocmatrix.matrix.matrix import Cell, Matrix

SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, kw_only=True)
class Diagnose:
    """Options of `diagnose`."""

    log: str = positional(
        "a log, compressed or not, or a folder with logs; - reads standard input, such as a pasted screen",
        metavar="LOG",
    )
    cell: str = option("rank for this cell", metavar="CELL")
    gpu: str = option("rank for this card, such as gfx1100 or 'RX 7900 XT' (default: this machine's)", metavar="GPU")
    doctor: str = option(
        "rank for the machine that this file describes instead of this one: what `doctor --json` printed there",
        metavar="PATH",
    )
    json: bool = option("print what was found as JSON, for programs", default=False)
    share: bool = option(
        "redact names of users and hosts, home folders, addresses and tokens in what is printed", default=False
    )
    watch: bool = option(
        "follow a log while it grows, and print when the likely cause changes; Ctrl-C ends it", default=False
    )
    report: bool = option(
        "print a filled-in bug report for the project that can fix it; nothing is sent", default=False
    )


@command(Diagnose, about="Find the likely cause of a failure in its log: cause, remedy, source, and what to try next.")
def diagnose(args: Diagnose) -> None:
    """Print the likely cause of a failure from its log, for a person or as JSON."""
    matrix = known_matrix()
    if args.watch:
        sys.exit(0 if _watched(args, matrix) else 1)
    with _kept(args) as log:
        found = _diagnosed(args, matrix, log)
        if args.report:
            print(_report(found, matrix, log, requested=_is_requested(args)))
        else:
            _print(found, args)
    if found.best is None:
        sys.exit(1)


def _print(found: Diagnosis, args: Diagnose) -> None:
    from rocmatrix.diagnosis import answer

    content = answer.described(found) if args.json else "\n".join(answer.text_lines(found))
    content = _shareable(content) if args.share else content
    if args.json:
        print_json(content)
    else:
        print("\n".join(text_table.folded(str(content).split("\n"))), flush=True)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let a search run without Python's collector of cycles: it makes none, and tuples that start it by the million."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_collector()
def _diagnosed(args: Diagnose, matrix: Matrix, log: Path | None) -> Diagnosis:
    """Return the diagnosis of a log, of a folder's logs, or of standard input where `log` is None."""
    from rocmatrix.diagnosis import diagnosis
    from rocmatrix.diagnosis.comparisons import forms
    from rocmatrix.diagnosis.intake import folder

    signatures, comparisons, seen = _known(), forms.load(ROOT), _seen(args)
    here, failed = _here(matrix, args, seen), seen.failed
    if log is not None and folder.is_folder(log):
        logs = folder.logs(log)
        rows = ((logs.name(path), _sound(_blocks(str(path)))) for path in logs.paths)
        found = diagnosis.diagnose_all(
            rows, name=f"{_name(args.log)} ({len(logs.paths)} logs)", signatures=signatures, here=here, matrix=matrix,
            failed_checks=failed, comparisons=comparisons,
        )  # fmt: skip
        return replace(found, left_out=(*logs.left_out, *found.left_out))
    with closing(_blocks(str(log) if log else "-")) as blocks:
        return diagnosis.diagnose(
            _sound(blocks), name=_name(args.log), signatures=signatures, here=here, matrix=matrix, failed_checks=failed,
            comparisons=comparisons,
        )  # fmt: skip


def _known() -> tuple[Signature, ...]:
    from rocmatrix.diagnosis import project_errors, signature

    return (*signature.load(ROOT), *project_errors.signatures())


def _seen(args: Diagnose) -> HostReport:
    """Return what doctor found where the log is from: as the named file reports it, else on this host."""
    from rocmatrix.diagnosis.machine import host_report

    if args.doctor:
        return host_report.read(Path(args.doctor))
    return host_report.HostReport() if _is_requested(args) else _own_report()


def _is_requested(args: Diagnose) -> bool:
    """Return whether options name the card or cell of the log, so of another machine than this."""
    return bool(args.cell) or args.gpu not in ("", "auto")


def _sound(blocks: Iterable[bytes]) -> Iterator[bytes]:
    from rocmatrix.diagnosis import explain_failure

    return explain_failure.without_successes(blocks)


@contextmanager
def _kept(args: Diagnose) -> Iterator[Path | None]:
    """Yield the log's path; None is standard input, which a report reads twice and so keeps in a file meanwhile.

    Of a zip archive it is the folder of its logs.
    """
    from rocmatrix.diagnosis.intake import archive

    packed = _zip_of(args.log)
    if packed is not None:
        with tempfile.TemporaryDirectory(prefix="rocmatrix-") as folder:
            archive.unpack(packed, Path(folder), name=_name(args.log))
            yield Path(folder)
        return
    if args.log != "-" or not args.report:
        yield None if args.log == "-" else Path(args.log)
        return
    with tempfile.NamedTemporaryFile(prefix="rocmatrix-") as kept:
        for block in _blocks("-"):
            kept.write(block)
        kept.flush()
        yield Path(kept.name)


def _zip_of(log: str) -> Path | IO[bytes] | None:
    """Return the zip archive that the log is; None where it, or standard input, is none."""
    from rocmatrix.diagnosis.intake import archive

    if log != "-":
        return Path(log) if archive.is_zip(Path(log)) else None
    if sys.stdin.isatty() or not sys.stdin.buffer.peek(4).startswith(archive.MAGIC):  # type: ignore[union-attr]
        return None
    return io.BytesIO(sys.stdin.buffer.read())


def _watched(args: Diagnose, matrix: Matrix) -> bool:
    """Print a diagnosis whenever the first answer changes; return whether there was one. Ctrl-C ends it."""
    from rocmatrix.diagnosis.comparisons import forms
    from rocmatrix.diagnosis.intake import watch
    from rocmatrix.diagnosis.intake.follow import Follower

    if args.log == "-" or args.report:
        what = "standard input" if args.log == "-" else "--watch and --report exclude each other"
        raise RocmatrixError("RM684", what=what, where=args.log)
    any_found, seen = False, _seen(args)
    with closing(Follower(Path(args.log))) as follower, suppress(KeyboardInterrupt):
        for found in watch.diagnoses(
            follower, signatures=_known(), here=_here(matrix, args, seen), matrix=matrix,
            failed_checks=seen.failed, pause=_pause, comparisons=forms.load(ROOT),
        ):  # fmt: skip
            any_found = True
            _print(found, args)
    return any_found


def _pause() -> bool:
    time.sleep(SECONDS_BETWEEN_LOOKS)
    return True


def _report(found: Diagnosis, matrix: Matrix, log: Path | None, *, requested: bool) -> str:
    """Return the report of a failure, filled with what the log and this host state."""
    from rocmatrix.diagnosis.intake import folder
    from rocmatrix.diagnosis.upstream import excerpt, facts, report, trackers
    from rocmatrix.host import hardware

    known = trackers.load(ROOT)
    quoted_log = log or Path("-")
    if folder.is_folder(quoted_log):
        quoted_log = quoted_log / found.best.log if found.best else folder.logs(quoted_log).paths[-1]
    programs = trackers.Programs(known)
    quoted = excerpt.excerpt(programs.watched(_blocks(str(quoted_log))), found.best.line if found.best else None)
    best = found.best
    fitting = trackers.chosen(
        known, line=best.text if best else "", named=programs.named, signature=best.signature if best else None
    )
    text = "\n".join((*quoted.head, *quoted.quoted))
    stated = facts.known(text, found, matrix.architectures, requested=requested, host=hardware.detect())
    return report.report(found, fitting, stated, quoted)


def _shareable(content: Any, names: tuple[str, ...] | None = None) -> Any:
    """Return words, or plain data, without what names a person or a machine, at one place of it or at all."""
    from rocmatrix.runtime import redaction
    from rocmatrix.runtime.sharing.places import known_names

    if names is None:
        names = (*redaction.own_names(), *known_names("\n".join(_words(content))))
    if isinstance(content, str):
        return redaction.redacted(content, names)
    if isinstance(content, dict):
        return {key: _shareable(value, names) for key, value in content.items()}
    return [_shareable(value, names) for value in content] if isinstance(content, list) else content


def _words(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (dict, list)):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _words(value)


def _name(log: str) -> str:
    return "standard input" if log == "-" else log


def _blocks(log: str) -> Generator[bytes, None, None]:
    from rocmatrix.diagnosis import log_reader

    if log != "-":
        with log_reader.opened(Path(log)) as stream:
            yield from log_reader.chunks(stream, name=log)
        return
    if sys.stdin.isatty():
        say("paste the text, then press Ctrl-D on a line of its own")
    yield from log_reader.chunks(sys.stdin.buffer, name=_name(log))


def _own_report() -> HostReport:
    """Return what doctor finds on this host; nothing where it has no card, as a log is then of another."""
    from rocmatrix.cli.commands.doctor import tree
    from rocmatrix.diagnosis.machine import host_report, host_values
    from rocmatrix.doctor import examination, host, knowledge

    examined_host = host.live(tree(""), cell=None, environment=os.environ)
    examined = examination.examine(examined_host, knowledge.load(ROOT))
    if examined.no_card:
        return host_report.HostReport()
    architectures = tuple(examined_host.hardware.architectures)
    report = host_report.of(examined.described())
    return replace(report, architectures=architectures, values=host_values.of(examined_host))


def _here(matrix: Matrix, args: Diagnose, seen: HostReport) -> HostContext:
    """Return where the log comes from: as named, else the machine that was seen, where the log names no other card."""
    from rocmatrix.diagnosis.explain_failure import host_context
    from rocmatrix.matrix.card_names import architecture_of

    chosen = matrix.cell(args.cell) if args.cell else None
    if args.gpu not in ("", "auto"):
        named = _card_of(chosen, architecture_of(matrix.architectures, args.gpu))
        return replace(host_context(chosen, architecture=named), warned=seen.warned, values=seen.values)
    found = seen.architectures if chosen is None else ()
    card = found[0] if len(found) == 1 else None
    here = replace(host_context(chosen, architecture=card), warned=seen.warned, values=seen.values)
    return here if chosen else replace(here, others=found, assumed=True)


def _card_of(cell: Cell | None, architecture: str) -> str:
    """Return a card's architecture. Raises RM404 where the cell is for another."""
    of_cell = cell.architecture if cell else None
    if cell is None or of_cell in (None, architecture):
        return architecture
    what = f"--gpu names a card of {architecture}, and the cell {cell.name} is for {of_cell}"
    raise RocmatrixError("RM404", what=what, next="Leave --gpu or --cell out, or name a cell of that card.")
