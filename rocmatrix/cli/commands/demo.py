"""`./invokew demo`: four tasks, each run as a person types it, and one page with their output."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.cli.options.command import command
from rocmatrix.jobs import stderr_tee as tee
from rocmatrix.jobs.runner import end, interruptible
from rocmatrix.runtime.console import say, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

MARK = ".rocmatrix-demo"  # states that the folder is a demo's own, and may be replaced
RUN, REPORT, LOG, PAGE = "run", "report.html", "failed.log", "index.html"
PIPE_WIDTH = 100  # columns at most where the program breaks lines for a pipe
SYNTHETIC_LOG = """\
SYNTHETIC: written by `./invokew demo`, in the words that HIP uses.
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss = model(batch.cuda()).mean()
RuntimeError: HIP error: invalid device function
HIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
"""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One task of the demo: what it shows, its arguments on the command line, and the file that it leaves."""

    title: str
    about: str
    arguments: Sequence[str]
    link: str = ""

    @property
    def command(self) -> str:
        """The command as it is typed."""
        return shlex.join(["./invokew", *self.arguments])


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a stage: `text` is all that it printed."""

    stage: Stage
    status: int
    seconds: float
    text: str

    @property
    def is_laid_out(self) -> bool:
        """Whether the program broke all lines itself, with their indents."""
        return all(len(line) <= PIPE_WIDTH for line in self.text.splitlines())


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Options of `demo`."""

    out: str = option("the folder to write; an earlier demo there is replaced", default="DEMO", metavar="PATH")
    gpu: str = option("the card to explain", default="RX 7900 XT", metavar="GPU")


@command(
    Demo,
    about="Train, report, explain a card and diagnose a log: one page links the results. Natively.",
)
def demo(args: Demo) -> None:
    """Run every stage and write the page. Raises RM653 for a folder of something else, RM654 where a stage failed."""
    folder = Path(args.out).absolute()
    began = time.monotonic()
    with writing(folder, flag="--out"):
        _clear(folder)
        (folder / LOG).write_text(SYNTHETIC_LOG, encoding="utf-8")
    try:
        ended = [_ran(stage) for stage in stages(Path(args.out), args.gpu)]
    except KeyboardInterrupt:  # half a demo shows nothing
        shutil.rmtree(folder, ignore_errors=True)
        say(f"\n{args.out} is removed, so there is no training to resume: start ./invokew demo again.")
        raise
    with writing(folder, flag="--out"):
        (folder / PAGE).write_text(page(ended), encoding="utf-8")
    print(f"page    {Path(args.out) / PAGE} ({time.monotonic() - began:.0f} s)", flush=True)
    if failed := [each.stage.title for each in ended if each.status != 0]:
        raise RocmatrixError("RM654", what=f"failed: {', '.join(failed)}", where=str(folder / PAGE))


def stages(folder: Path, gpu: str) -> tuple[Stage, ...]:
    """Return what is run, in order.

    Args:
        folder: folder of the demo, as it was named.
        gpu: the card to explain.
    """
    run, report = str(folder / RUN), str(folder / REPORT)
    return (
        Stage(
            title="A training run",
            about="The sample data (S&P 500 and VIX by the day) on this machine's CPU. The folder holds the model, its "
            "figures and metadata.json with data hash, seed, versions and commit.",
            arguments=("train", "--in", "native", "--output", str(folder), "--run", RUN),
            link=f"{RUN}/metadata.json",
        ),
        Stage(
            title="Its report",
            about="Losses, errors, the weight of each input, and the split, as one page without a script.",
            arguments=("report", run, "--output", report),
            link=REPORT,
        ),
        Stage(
            title="A card explained",
            about="Which ROCm and PyTorch a card gets, and why: every rule with its source. "
            "Nothing here was run on AMD hardware by this project.",
            arguments=("explain", "--gpu", gpu),
        ),
        Stage(
            title="A failed log diagnosed",
            about="The log is SYNTHETIC. diagnose LOG gives cause, remedy and source of your own one, and what to "
            "try next.",
            arguments=("diagnose", str(folder / LOG), "--gpu", gpu),
            link=LOG,
        ),
    )


def page(ended: Sequence[Ended]) -> str:
    """Return the page as HTML."""
    from rocmatrix.runtime import templates

    return templates.environment(html=True).get_template("demo.html.j2").render(ended=ended)


def _clear(folder: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise RocmatrixError("RM653", what="the folder holds something else than a demo", where=str(folder))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()


def _ran(stage: Stage) -> Ended:
    say(f"\n$ {stage.command}")
    began = time.monotonic()
    program = [sys.executable, "-E", "-P", str(ROOT / "rocmatrix/cli/program.py")]  # as invokew starts it
    argv = [*program, "--search-root", str(ROOT), *stage.arguments]
    with tee.tee_stderr(sys.stderr) as stderr:
        status, printed = _to_its_end(argv, stderr.writable)
    seconds = time.monotonic() - began
    text = f"{_lines(stderr.tail)}\n{printed}".strip()
    say(f"  {'done' if status == 0 else f'ended with {status}'} in {seconds:.1f} s")
    return Ended(stage=stage, status=status, seconds=seconds, text=text)


def _to_its_end(argv: list[str], stderr: int) -> tuple[int, str]:
    """Return the status of a program and what it printed; a signal that ends the demo ends it, too.

    Args:
        argv: the whole command.
        stderr: descriptor for its standard error.
    """
    with (
        interruptible(),
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace") as process,
    ):
        try:
            printed, _ = process.communicate()
        except BaseException as stop:
            end(process, stop)
            raise
    return process.returncode, printed


def _lines(written: bytes) -> str:
    """Return what a terminal shows of a text in the end: of a line that was drawn again and again, the last state."""
    rows = written.decode(errors="replace").replace("\r\n", "\n").split("\n")
    return "\n".join(row.rstrip("\r").rpartition("\r")[2].rstrip() for row in rows)
