"""Errors a person can act on: what, where, why, next step, under a stable code.

The catalog is the source of `docs/errors.md`. Codes are never reused: RM0xx matrix and resolving,
RM1xx rendering and locks, RM2xx engine, build and launch, RM3xx hardware, RM4xx the wrapper and the
native environment, RM6xx evidence and the nightly. RM5xx belong to the trainer, which keeps its own catalog.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One stable code: its title, what it means, and the usual way out."""

    code: str
    title: str
    meaning: str
    next: str


def _catalog(*rows: tuple[str, str, str, str]) -> dict[str, CatalogEntry]:
    return {code: CatalogEntry(code=code, title=t, meaning=m, next=n) for code, t, m, n in rows}


CATALOG = _catalog(
    (
        "RM001",
        "The matrix file is not valid",
        "matrix.yaml (or a file it includes) breaks the schema; every mistake is listed with its line.",
        "Correct the named lines; names close to what was written are suggested.",
    ),
    (
        "RM002",
        "A matrix file cannot be read",
        "The file is missing, is not text, or the operating system refused to open it.",
        "Check the path and its permissions; `git checkout matrix.yaml matrix/` restores the shipped files.",
    ),
    (
        "RM010",
        "Unknown name",
        "A cell, card, architecture or release was asked for that the matrix does not hold.",
        "Take one of the nearest names, or add the entry with its evidence to matrix.yaml.",
    ),
    (
        "RM011",
        "No cell fits the request",
        "Every name exists, but no cell combines them.",
        "Drop or change one of the axes; the nearest cells are named.",
    ),
    (
        "RM012",
        "The combination is known to be broken",
        "A rule of the matrix says that this combination does not work, with its source.",
        "Use the nearest working cell that is named, or read the rule's source; `--force` overrides the rule.",
    ),
    (
        "RM013",
        "A companion package is known to be broken there",
        "A rule of matrix/companions.yaml says that the package does not work on this combination, with its source.",
        "Leave the package out, or take a cell for which no rule calls it broken; the message names one if there is.",
    ),
    (
        "RM101",
        "A rendered file has drifted",
        "A committed file under images/, compose/ or between README markers differs from what matrix.yaml renders.",
        "Run `./invokew render` and commit the result; edit the matrix or the template, never the output.",
    ),
    (
        "RM102",
        "A cell has no complete lock",
        "A wheel of the cell has no recorded hash, so its content cannot be checked.",
        "Run `./invokew lock` where its index can be reached, or choose a locked cell.",
    ),
    (
        "RM103",
        "A wheel does not match its hash",
        "A file in the wheelhouse has other bytes than the lock names: damaged or tampered with.",
        "Delete the named file and build again to fetch it anew; if it differs again, do not use that source.",
    ),
    (
        "RM104",
        "A wheel cannot be fetched",
        "No configured source served the locked file.",
        "Check the network, or point --wheelhouse to a folder that already holds the file.",
    ),
    (
        "RM105",
        "Resolving the pins failed",
        "The package resolver found no set of versions for the requirements.",
        "Read its last lines, loosen the pin they name, and run the task again.",
    ),
    (
        "RM106",
        "A hash is from a channel of candidates",
        "A test, nightly, prerelease or development index serves files that a release of the same name may replace.",
        "Take the hash from the index of the release itself.",
    ),
    (
        "RM107",
        "A nightly has expired",
        "The wheel is from a nightly index, which deletes its files after 120 days.",
        "Lock a release instead; a nightly that has gone cannot be fetched again from anywhere.",
    ),
    (
        "RM108",
        "A package came from another index",
        "A package of torch or ROCm was chosen from a source other than the release's own index.",
        "Remove the source that serves the package of that name from pip's configuration, and lock again.",
    ),
    (
        "RM109",
        "Not everything was locked",
        "Some releases have no recorded hash, and their index did not give one; the others were written.",
        "Run `./invokew lock` again where the indexes that are named can be reached.",
    ),
    (
        "RM201",
        "No container engine answers",
        "The docker client is missing, or the daemon is stopped or not reachable by this user.",
        "Start it (`sudo systemctl start docker`), join its group, or use `--in native`.",
    ),
    (
        "RM202",
        "The build failed",
        "BuildKit ended with an error; its log was kept.",
        "Read the last lines shown and the kept log; `--dry-run` prints the exact command.",
    ),
    (
        "RM203",
        "The image is not there",
        "The cell's image has not been built on this engine.",
        "Run `./invokew build --cell NAME` first.",
    ),
    (
        "RM204",
        "The base image is not there",
        "The image named by --base is unknown to the engine and could not be pulled.",
        "Check the name with `docker image ls`, or leave --base out.",
    ),
    (
        "RM205",
        "The disk is full",
        "A file could not be written because no space was left; unfinished files were removed.",
        "Free space at the named place (`docker system df`, `docker builder prune`) and run again.",
    ),
    (
        "RM206",
        "A folder cannot be written",
        "The output folder is read-only or belongs to another user.",
        "Choose another with --output, or correct its permissions.",
    ),
    (
        "RM207",
        "The container ended in failure",
        "The program inside ended with a non-zero status; its own error stands above.",
        "Follow the error printed by the program; status 137 means that memory ran out or it was killed.",
    ),
    (
        "RM208",
        "The smoke suite failed",
        "A probe failed, gave no verdict, or nothing was probed.",
        "Read the failed rows; each names what was measured and the limit.",
    ),
    (
        "RM210",
        "The image is not what its cell claims",
        "`./invokew prove` looked into the image's files, and at least one comparison with its cell failed.",
        "Read the findings: each has a code of its own. Do not run or publish the image as this cell.",
    ),
    (
        "RM211",
        "No device code",
        "torch holds host code alone: it imports, and fails at the first operation on a card.",
        "Check that the lock names the ROCm build, and the architecture's device package where there is one.",
    ),
    (
        "RM212",
        "Device code for other architectures only",
        "A library that the cell needs holds kernels, but none that run on the cell's architecture.",
        "Take a release that was built for the architecture; `./invokew explain` names one.",
    ),
    (
        "RM213",
        "Device code of other architectures left behind",
        "The cell is for one architecture alone, but there are files for others, or device code in a CPU image.",
        "Build again with the cell's own Dockerfile; where the prune stage left them, report the files.",
    ),
    (
        "RM214",
        "A kernel library is empty",
        "A library that the cell needs is missing, holds no kernels, or lacks the index of the architecture.",
        "Build again from the locked wheels; the rocBLAS of some releases lacks an architecture: `./invokew explain`.",
    ),
    (
        "RM215",
        "Device code cannot be read",
        "A file is damaged, of a format that is not known, or holds code for another architecture than its name says.",
        "Build again; where the file is as the wheel has it, report it with its path.",
    ),
    (
        "RM216",
        "The packages differ from the lock",
        "The image holds another set of Python packages, or other versions, than its cell's lock.",
        "Build again from the rendered files; an unlocked cell cannot be proven: `./invokew lock` first.",
    ),
    (
        "RM217",
        "The image holds what it should not",
        "Caches, logs, secrets, files open to all, foreign owners or byte code with time stamps were left in it.",
        "Remove them in the layer that makes them; a later layer only hides them.",
    ),
    (
        "RM218",
        "The image has grown, or has no recorded size",
        "Its files take more than the limit over the size recorded in matrix/baselines.yaml, or none is recorded.",
        "Find what grew; where it is meant, add the new size with its `reason`.",
    ),
    (
        "RM219",
        "The image is of another cell",
        "Its labels or its default user are not those of the cell that it was to be proven for.",
        "Name the cell that it was built for, or build it again.",
    ),
    (
        "RM220",
        "Pruning failed",
        "Nothing was there to remove, a file of the cell's own architecture would have gone, or bytes did not go down.",
        "Leave `prune` out for this cell and report the layout of the wheel; nothing was tagged.",
    ),
    (
        "RM221",
        "There was nothing to look into",
        "The folder does not exist, the image's export broke off, or it holds no file or no torch.",
        "Name an image or a folder that holds the libraries; a check with nothing to check has failed.",
    ),
    (
        "RM222",
        "No wheel of the package for ROCm",
        "No package index serves a wheel of this companion for ROCm, and an image installs from checked wheels alone.",
        "Leave it out, or build it from source in an image of your own on top of the cell's; the message says how.",
    ),
    (
        "RM301",
        "No AMD card was found",
        "The kernel's topology lists no GPU, or the driver is not loaded.",
        "Load amdgpu (`sudo modprobe amdgpu`), or name the card with --gpu to build for another machine.",
    ),
    (
        "RM302",
        "The card's nodes cannot be used",
        "/dev/kfd or a render node is missing or closed to this user.",
        "Join the numeric group of the node that is named, then log in again.",
    ),
    (
        "RM303",
        "No card of this host fits",
        "The host has AMD cards, but none of the architecture that the cell is built for, or none of that number.",
        "Take a cell of an architecture that is listed, or choose cards by their number with --cards.",
    ),
    (
        "RM310",
        "Nothing to examine",
        "The folder or file that the doctor was given is missing or cannot be read.",
        "Give --sysfs the folder that stands for / of the machine, or name an existing compose file or Dockerfile.",
    ),
    (
        "RM311",
        "A file of settings cannot be understood",
        "A compose file, an env file or a Dockerfile breaks its own syntax, so its environment is not known.",
        "Correct the named line; `docker compose config` and `docker build --check` show the engine's own opinion.",
    ),
    (
        "RM401",
        "No suitable Python",
        "The wrapper needs Python 3.11 or newer with the venv module.",
        "Install it, or name one with ROCMATRIX_PYTHON=/path/to/python3.",
    ),
    (
        "RM402",
        "The environment could not be made",
        "Making .venv or installing the locked requirements failed.",
        "Read the installer's last lines; a hash mismatch means that the source served another file.",
    ),
    (
        "RM403",
        "The trainer cannot run natively here",
        "No torch build in the matrix fits this machine's Python and accelerator.",
        "Run in a container (`--in container`), or use a Python that the message names.",
    ),
    (
        "RM404",
        "Wrong usage",
        "An option has a value that it does not take.",
        "Take one of the values named, or see `./invokew --help TASK`.",
    ),
    (
        "RM405",
        "This torch has no expandable segments",
        "Its GPU allocator on ROCm cannot let segments grow, or nothing is recorded of it.",
        "Leave --expandable-segments out, or take a cell with torch 2.12 or newer; `./invokew explain` says more.",
    ),
    (
        "RM410",
        "No RDMA adapter was found",
        "--with-rdma was given, but the host shows no adapter under /dev/infiniband.",
        "Load the adapter's driver (`ls -ln /dev/infiniband`), or leave --with-rdma out.",
    ),
    (
        "RM411",
        "Another CDI specification names the cards",
        "A second file that names the same devices makes every one of them unusable: engines refuse both.",
        "Use the file that is there, or remove it first.",
    ),
    (
        "RM412",
        "A dev container belongs to a user who is not root",
        "Files that an editor writes would belong to root, so a numeric user is needed.",
        'Run it as yourself, without sudo, or name a user: --user "$(id -u):$(id -g)".',
    ),
    (
        "RM413",
        "A file of somebody else's is in the way",
        "The file to be written is there already and was not made by this program.",
        "Move it away, or give --to another place.",
    ),
    (
        "RM414",
        "The target cannot carry this run",
        "The engine that was asked for has no way to do what the run needs.",
        "Choose another target with --for, or change what is named.",
    ),
    (
        "RM420",
        "The scheduler's command is not installed",
        "Jobs are handed to Slurm by `sbatch` and to Kubernetes by `kubectl`; this machine lacks the one it takes.",
        "Submit where it is installed, such as a login node; `--dry-run` prints the files and the command.",
    ),
    (
        "RM421",
        "The scheduler did not take the job",
        "The files were written and handed over; the scheduler's own words say why it did not take them.",
        "Where it cannot be reached, submit from where it can; else change what it names, such as --nodes or --cards.",
    ),
    (
        "RM422",
        "The job has no place for its results",
        "A pod's own files go with it, so results need a claim that outlives it and that all nodes can write.",
        "Name a PersistentVolumeClaim with --claim (access mode ReadWriteMany for several nodes).",
    ),
    (
        "RM423",
        "What the nodes have is not known here",
        "The machine that submits has no card of the cell's architecture, and jobs ask for cards and groups by number.",
        "Say it: --cards N (of each node) and --groups with what `stat -c %g /dev/kfd /dev/dri/renderD*` prints there.",
    ),
    (
        "RM424",
        "The scheduler cannot carry this job",
        "What was asked for has no word in the scheduler's language.",
        "Change what is named, or choose another way with --engine or --under.",
    ),
    (
        "RM620",
        "A run could not be recorded",
        "The job ended as it says; its record could not be written: the disk is full, or the place is read-only.",
        "Make room, or name another file with ROCMATRIX_EVIDENCE; the job need not be run again for its own sake.",
    ),
    (
        "RM621",
        "The evidence cannot be read",
        "The file is no evidence of this program: another database, one of a newer version, or damaged.",
        "Name another file with --evidence or ROCMATRIX_EVIDENCE, or move this one away.",
    ),
    (
        "RM622",
        "Evidence to be imported is refused",
        "The file is damaged, foreign, or holds a record whose content is not what its hash says; nothing was taken.",
        "Ask for a fresh `./invokew evidence --export FILE`, and take the file as it was written.",
    ),
    (
        "RM630",
        "A night did not pass",
        "Some cells could not be built, proven or smoked, or did worse than on their last good night.",
        "Look at the cells that are named: `./invokew evidence --cell NAME`, `./invokew dashboard`.",
    ),
    (
        "RM631",
        "The nightly's plan does not hold",
        "No cell is left to do, or a night of that name was planned for other cells.",
        "Name cells with --cells, or begin another night with --night NAME.",
    ),
    (
        "RM632",
        "The disk budget is used up",
        "What the nightly may remove (its own images and its builder's cache) was removed, and it is not enough.",
        "Raise --budget, or name fewer cells with --cells.",
    ),
    (
        "RM633",
        "There is nothing to bisect between",
        "A bisection needs a good cell and a later bad one for the same card and probe, both on record.",
        "Smoke the newest and an older cell of that card, or name them with --good and --bad.",
    ),
    (
        "RM634",
        "The history is not of one kind",
        "Good and bad cells alternate, so that no single step explains the failure; every change is listed.",
        "Look at each change by itself, or repeat the probe: it may fail now and then.",
    ),
    (
        "RM640",
        "The dashboard's folder is somebody else's",
        "The folder holds files that this program did not write, and a dashboard replaces what it finds.",
        "Name an empty or a new folder with --out.",
    ),
    (
        "RM499",
        "An unexpected error",
        "The program met something it has no words for; this is a defect of rocmatrix.",
        "Report it with the file that holds the traceback.",
    ),
    (
        "RM610",
        "There is no log to diagnose",
        "The file does not exist, cannot be opened, is a folder or is empty; or nothing was piped in.",
        "Name a log, or pipe one in: `... 2>&1 | ./invokew diagnose -`.",
    ),
    (
        "RM611",
        "The log cannot be unpacked",
        "It begins as a packed file does, but nothing could be unpacked from it.",
        "Unpack it by hand to see what is left, or fetch it again.",
    ),
    (
        "RM612",
        "A benchmark failed",
        "A benchmark computed wrongly, ended without a figure, or nothing was measured. The others' figures stand.",
        "Read the failed rows, then the log; `./invokew bench --only NAME` measures one again.",
    ),
)


class RocmatrixError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        parts = {"what": self.what, "where": self.where, "why": self.why, "next": self.next}
        lines = [f"{self.code} {self.title}"]
        lines += [f"  {label + ':':<6} {_indent(text)}" for label, text in parts.items() if text]
        return "\n".join(lines)


def _indent(text: str) -> str:
    return text.replace("\n", "\n         ")


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Return up to `most` known names that resemble `name`, best first, letter case ignored."""

    def resemblance(candidate: str) -> tuple[float, int]:
        # Names of chips differ by one digit, which the ratio alone cannot rank: same places break ties.
        wanted, folded = name.casefold(), candidate.casefold()
        ratio = difflib.SequenceMatcher(None, wanted, folded).ratio()
        return ratio, sum(a == b for a, b in zip(wanted, folded, strict=False))

    ranked = sorted(known, key=resemblance, reverse=True)
    return [candidate for candidate in ranked[:most] if resemblance(candidate)[0] >= 0.5]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    hits = nearest(name, known)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"
