"""`./invokew diagnose`. Status 0: a known failure was found. 1: none was. 2: the log could not be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import known_matrix, print_json
from rocmatrix.cli.options.command import command
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option, positional
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.diagnosis.ranking import HostContext
    from rocmatrix.matrix.matrix import Cell, Matrix


@dataclass(frozen=True, kw_only=True)
class Diagnose:
    """Options of `diagnose`."""

    log: str = positional("a log, packed or not; - reads standard input")
    cell: str = option("rank for this cell")
    gpu: str = option("rank for this card, such as gfx1100 or 'RX 7900 XT' (default: this machine's)")
    json: bool = option("print what was found as JSON, for programs", default=False)
    share: bool = option(
        "take names of users and hosts, homes, addresses and tokens out of what is printed", default=False
    )


@command(Diagnose, about="Find the likely cause of a failure in its log: cause, remedy, source, and what to try next.")
def diagnose(args: Diagnose) -> None:
    """Print the likely cause of a failure from its log, for a person or as JSON."""
    from rocmatrix.diagnosis import diagnosis, explain_failure, project_errors, signature

    log, cell, gpu, share = args.log, args.cell, args.gpu, args.share
    matrix = known_matrix()
    here = _here(matrix, cell, gpu)
    with closing(_blocks(log)) as blocks:
        without_successes = explain_failure.without_successes(blocks)
        known = (*signature.load(ROOT), *project_errors.signatures())
        found = diagnosis.diagnose(
            without_successes,
            name=_name(log),
            signatures=known,
            here=here,
            matrix=matrix,
            failed_checks=() if cell or gpu not in ("", "auto") else _failed_checks(),
        )
    if args.json:
        print_json(_shareable(diagnosis.described(found)) if share else diagnosis.described(found))
    else:
        text = "\n".join(diagnosis.text_lines(found))
        print(_shareable(text) if share else text)
    if found.best is None:
        sys.exit(1)


def _shareable(content: Any) -> Any:
    """Return words, or plain data, without what names a person or a machine."""
    from rocmatrix.runtime.redaction import redacted

    if isinstance(content, str):
        return redacted(content)
    if isinstance(content, dict):
        return {key: _shareable(value) for key, value in content.items()}
    return [_shareable(value) for value in content] if isinstance(content, list) else content


def _name(log: str) -> str:
    return "standard input" if log == "-" else log


def _blocks(log: str) -> Generator[bytes, None, None]:
    from rocmatrix.diagnosis import log_reader

    if log != "-":
        with log_reader.opened(Path(log)) as stream:
            yield from log_reader.chunks(stream, name=log)
        return
    if sys.stdin.isatty():
        raise RocmatrixError("RM610", what="standard input is the terminal", where="-", next="Pipe the log in.")
    yield from log_reader.chunks(sys.stdin.buffer, name=_name(log))


def _failed_checks() -> frozenset[str]:
    """Return the codes of doctor's checks that fail on this host; none where it has no card, as a log of another's."""
    from rocmatrix.cli.commands.doctor import tree
    from rocmatrix.doctor import examination, host, knowledge

    examined = examination.examine(host.live(tree(""), cell=None, environment=os.environ), knowledge.load(ROOT))
    if examined.no_card:
        return frozenset()
    return frozenset(finding.code for finding in examined.findings if finding.status == "error")


def _here(matrix: Matrix, cell: str, gpu: str) -> HostContext:
    """Return where the log comes from: as named, else the one architecture of this host's cards."""
    from rocmatrix.diagnosis.explain_failure import host_context
    from rocmatrix.host import hardware
    from rocmatrix.matrix.card_names import architecture_of

    chosen = matrix.cell(cell) if cell else None
    if gpu not in ("", "auto"):
        return host_context(chosen, architecture=_card_of(chosen, architecture_of(matrix.architectures, gpu)))
    found = hardware.detect().architectures if chosen is None else ()
    return host_context(chosen, architecture=found[0] if len(found) == 1 else None)


def _card_of(cell: Cell | None, architecture: str) -> str:
    """Return a card's architecture. Raises RM404 where the cell is for another."""
    of_cell = cell.architecture if cell else None
    if cell is None or of_cell in (None, architecture):
        return architecture
    what = f"--gpu names a card of {architecture}, and the cell {cell.name} is for {of_cell}"
    raise RocmatrixError("RM404", what=what, next="Leave --gpu or --cell out, or name a cell of that card.")
