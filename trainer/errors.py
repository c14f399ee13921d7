"""Errors a person can act on: what, where, why, next step, under a stable code.

RM500 to RM599 belong to the trainer. Codes are never reused. `python -m trainer errors` prints the catalog.
"""

from __future__ import annotations

import difflib
import errno
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
        "RM500",
        "Wrong usage",
        "The command line names an unknown command or flag, or gives a flag a value it does not take.",
        "Correct the flag that is named; `python -m trainer train --help` lists them all.",
    ),
    (
        "RM501",
        "A package cannot be imported",
        "The trainer runs on torch, numpy, safetensors and tqdm; one of them is missing or broken.",
        "Install it, or run in a cell's image or in the environment that `./invokew` makes.",
    ),
    (
        "RM502",
        "No such recipe",
        "What --recipe names is no recipe of the trainer and no file, or the file is no YAML of sections.",
        "Take a recipe that is named, or give the path of a file; `recipes/` shows how one is written.",
    ),
    (
        "RM503",
        "Unknown setting",
        "A recipe, or --set, names a setting that does not exist, or gives it below another section.",
        "Take the setting that is named; `python -m trainer train --help` lists them all.",
    ),
    (
        "RM504",
        "A setting does not take this value",
        "The value is of another kind than the setting, or outside its bounds.",
        "Correct the value at the named place.",
    ),
    (
        "RM505",
        "A setting is given twice",
        "Flags and --set have the same rank, so two different values for one setting contradict each other.",
        "Leave one of the two out; either wins over a recipe, and a recipe over the default.",
    ),
    (
        "RM506",
        "A layer produced NaN or infinity",
        "The guard found a layer's output that is no finite number; the batches since its last look were saved.",
        "Run `python -m trainer replay FILE` on the saved file; often a lower --learning-rate is the remedy.",
    ),
    (
        "RM507",
        "A tracker cannot be used",
        "What --track names is not installed, or refused to start.",
        "Install the named package where the trainer runs, or leave the tracker out of --track.",
    ),
    (
        "RM508",
        "The replay file cannot be used",
        "The file is missing, damaged, or was not written by the trainer's NaN guard.",
        "Give the nan-step-N.pt that the failed run named.",
    ),
    (
        "RM510",
        "Data file cannot be read",
        "The file of bars does not exist, or is no CSV text (plain, gzip or zstd), Parquet or Arrow file.",
        "Check the path given with --data; without --data the shipped sample is used.",
    ),
    (
        "RM511",
        "Data file is empty",
        "The file holds no header, or a header and not one bar.",
        "Give a CSV with a header line and a line for each bar.",
    ),
    (
        "RM512",
        "A column is missing",
        "Bars need a time, open, high, low, close and volume, each once, in a usual spelling; others are ignored.",
        "Rename the column in the header, add it, or remove its double.",
    ),
    (
        "RM513",
        "A row cannot be read",
        "A row has too few or too many cells, or a cell is not the number or the date it should be.",
        "Correct or delete the named line, or let --on-bad-row drop or repair such rows.",
    ),
    (
        "RM514",
        "A bar is impossible",
        "Prices and VIX must be above zero, volume not below it, and open and close between low and high.",
        "Correct or delete the named line; a high below its low usually means swapped columns.",
    ),
    (
        "RM515",
        "Dates are out of order",
        "Each bar must be later than the one before it; features and the split by time rely on that.",
        "Sort the file by date and remove doubles.",
    ),
    (
        "RM516",
        "Data file looks cut off",
        "The last line has no line end, or compressed data breaks off, so the last number may have lost digits.",
        "Get the file again; if it is complete, add the missing line end, or use --on-bad-row drop.",
    ),
    (
        "RM517",
        "Too few bars",
        "After the features' lookback, the target's horizon and the embargoes, too few rows are left.",
        "Give more bars, raise --data-fraction or lower --horizon.",
    ),
    (
        "RM518",
        "The target never changes",
        "All training targets are equal (a flat price series), so there is nothing to learn.",
        "Check the close column of the data.",
    ),
    (
        "RM520",
        "The device is not here",
        "The device asked for with --device does not exist on this machine, or does not compute.",
        "Take one of the devices that are named, or --device auto.",
    ),
    (
        "RM521",
        "Out of device memory",
        "The data and the model do not fit into the memory that is free on the device.",
        "Lower --batch-size or --data-fraction, or use --device cpu.",
    ),
    (
        "RM522",
        "The number format does not compute here",
        "The format asked for with --precision failed the numeric self-test on this device, or does not exist there.",
        "Use --precision auto, which takes what passes, or --precision fp32.",
    ),
    (
        "RM523",
        "Not even one row fits",
        "Memory ran out with one row per micro-batch; there is nothing left to cut smaller.",
        "Take a smaller model (--hidden-layers) or another device, and look who else uses the memory.",
    ),
    (
        "RM530",
        "The loss is not a finite number",
        "Training diverged: the loss became infinite or not a number.",
        "Lower --learning-rate; if it still diverges on a GPU, compare with --device cpu.",
    ),
    (
        "RM540",
        "The run already exists",
        "A run is never overwritten: a folder of this name, or its unfinished twin, is in the output folder.",
        "Choose another name with --run, or leave --run out.",
    ),
    (
        "RM541",
        "Permission denied",
        "The operating system does not let this user read or write the named path.",
        "Choose another folder with --output, or correct the permissions.",
    ),
    (
        "RM542",
        "The file system is read-only",
        "The output folder cannot be written by anyone; in a container its mount may be read-only.",
        "Mount it writable, or choose another folder with --output.",
    ),
    (
        "RM543",
        "The disk is full",
        "A file could not be written because no space was left; unfinished files were removed.",
        "Free space at the named place, or choose another folder with --output.",
    ),
    (
        "RM544",
        "Not a folder",
        "A part of the output path is a file.",
        "Choose another folder with --output.",
    ),
    (
        "RM545",
        "Nobody reads the output",
        "The program that read the trainer's standard output ended first.",
        "Start the run again and keep its reader alive, or write the output to a file.",
    ),
    (
        "RM546",
        "No usable model folder",
        "What --model names is no folder of a finished run, or its metadata.json is damaged or of another version.",
        "Give the folder TRAINING/<run> of a finished run, made by this version of the trainer.",
    ),
    (
        "RM547",
        "The model's file is damaged",
        "The bytes of the file are not those whose SHA-256 metadata.json records.",
        "Copy the run's folder again, or train again from its recipe.yaml.",
    ),
    (
        "RM548",
        "The model needs other features",
        "The model was trained on features that this version of the trainer does not compute, or computes otherwise.",
        "Use the version of the trainer that metadata.json names under versions.",
    ),
    (
        "RM549",
        "The model cannot be exported as ONNX",
        "A package that torch's exporter needs is not installed, or the exporter refused the network.",
        "Install onnx and onnxscript where the trainer runs, or leave --export onnx out.",
    ),
    (
        "RM550",
        "No such unfinished run",
        "The run named with --resume has no unfinished folder in the output folder.",
        "Name one that is listed, or use --resume auto, which starts anew where there is none.",
    ),
    (
        "RM551",
        "The unfinished run is another one",
        "A setting that decides the weights, or the data, differs from those the run was started with.",
        "Leave the setting out (the run's own is used then), or start a new run.",
    ),
    (
        "RM552",
        "A checkpoint is damaged",
        "A file of it is missing, cut off or changed: its checksum is not the one that was written.",
        "Nothing: the checkpoint before it is used, or the run begins anew. If it happens again, check the disk.",
    ),
    (
        "RM553",
        "A checkpoint could not be written",
        "The disk is full or failed. The run goes on, and the last good checkpoint stays as it is.",
        "Free space at the named place; the next checkpoint is tried when it is due.",
    ),
    (
        "RM554",
        "Stopped, to be gone on with",
        "The run was asked to end (SIGTERM) and kept a checkpoint; the exit status is 75.",
        "Start the same command with --resume auto.",
    ),
    (
        "RM555",
        "The run is under way",
        "Another process has this run open; two would overwrite each other's checkpoints.",
        "Wait for it, end it, or choose another name with --run.",
    ),
    (
        "RM571",
        "Volumes are too large to be counted",
        "Profiles count volume exactly, in millionths of a contract, and 64 bits hold no more than about 2e12.",
        "Give the volume in larger units, such as thousands.",
    ),
    (
        "RM572",
        "A profile has too many rows",
        "One price is far from the others, or the price step is far too small for this instrument.",
        "Correct the price, or raise --tick or --row-ticks.",
    ),
    (
        "RM573",
        "No such time zone",
        "Zones are named as in the IANA data base, America/New_York or UTC.",
        "Correct --time-zone or --session-zone.",
    ),
    (
        "RM574",
        "Dates can be read in two ways",
        "Day and month could be either way round, and both readings are in order.",
        "Name the format, such as --time-format '%d/%m/%Y %H:%M'.",
    ),
    (
        "RM575",
        "Some times name a zone, others do not",
        "A time without an offset from UTC is taken as wall clock, so a mix of both is usually two files in one.",
        "Correct the rows, or read them as they are written with --on-bad-row repair.",
    ),
    (
        "RM576",
        "A feature file is damaged",
        "The file or the metadata beside it is missing, or they do not belong together.",
        "Compute it again with `features --data FILE --out FILE`.",
    ),
    (
        "RM577",
        "The price step is unknown",
        "Profiles need the step in which prices move, and no usual one fits the prices of this file.",
        "Give it with --tick.",
    ),
    (
        "RM578",
        "No bar lies in a session",
        "The hours of the session, its zone or the zone of the data do not fit the data.",
        "Correct --session, --session-zone or --time-zone.",
    ),
    (
        "RM579",
        "These features do not fit these bars",
        "Intraday features need several bars a session; features of days need a VIX column.",
        "Choose with --features, or give bars of another spacing.",
    ),
    (
        "RM524",
        "The run's data are needed",
        "Losses are measured on the very rows that the run held out, so its data must be there, byte for byte.",
        "Give the file that the run was trained on with --data.",
    ),
    (
        "RM580",
        "The table cannot be used as it is",
        "A column is missing or stands twice, a line has another number of cells, or a cell does not fit its column.",
        "Correct the file at the named place, or choose other columns with --target, --ignore and --categories.",
    ),
    (
        "RM581",
        "A value is missing",
        "The policy for missing values is `error`, and the table has one.",
        "Fill it in, or choose --missing fill or --missing drop when training.",
    ),
    (
        "RM582",
        "Nearly every row has a word of its own",
        "Such a column, an identifier or free text, tells a network nothing about other rows.",
        "Leave the column out with --ignore.",
    ),
    (
        "RM583",
        "The training part does not show everything",
        "A column has no value there, or a class has too few rows to stand in every part.",
        "Give more rows, leave the column out with --ignore, or split otherwise with --time-column none.",
    ),
    (
        "RM584",
        "An unknown category",
        "The model was trained with --unknown error, and a row has a word that its training never met.",
        "Correct the word, or train again with --unknown zero.",
    ),
    (
        "RM556",
        "Nothing to compare",
        "A run's log of batches is not there or cannot be read; it is written epoch by epoch.",
        "Give the folders of two runs that have finished an epoch, as in TRAINING/one TRAINING/two.",
    ),
    (
        "RM557",
        "Settings of the network do not fit",
        "A transformer needs blocks, norms by layer and has heads that share its width; only it has attention.",
        "Change one of the settings that are named.",
    ),
    (
        "RM558",
        "An attention kernel is wrong",
        "Its output or gradients on this device are not those of attention in fp64, so the next kernel is used.",
        "Nothing: the run goes on with a kernel that is right. Tell whoever made the card's torch, with the figures.",
    ),
    (
        "RM559",
        "Memory ran out within the optimizer's step",
        "It was there when it was asked for just before. What the step left is not kept; checkpoints are whole.",
        "Start the same command with --resume auto and a smaller --micro-batch; look for others that use the card.",
    ),
    (
        "RM569",
        "Memory ran out where it cannot be undone",
        "Ranks that hold parts of one model wait for each other within a step, so none can take it back.",
        "Start the same command with --resume auto: it goes on from its last checkpoint with half the micro-batch.",
    ),
    (
        "RM585",
        "Steps cannot be taken that way here",
        "Whole steps in one launch fit some networks and devices only, and are held against the step by autograd.",
        "Give --step auto, which takes what is possible and says why, or --step eager.",
    ),
    (
        "RM586",
        "The rows do not fit on the device",
        "Weights, activations and gradients need memory beside the rows.",
        "Give --feed host or --feed mapped, or auto, which chooses.",
    ),
    (
        "RM560",
        "A rank no longer moved",
        "The watchdog found a rank in one section for longer than that section may take, and ended all ranks.",
        "Read the stacks in the folder that is named; the run goes on from its last checkpoint with --resume auto.",
    ),
    (
        "RM561",
        "No way to communicate",
        "None of the ways between the ranks passed its probe: each hung, ended or returned a wrong sum.",
        "Read the verdict of each way above; decide by hand with --comms, or train on one card.",
    ),
    (
        "RM562",
        "This torch lacks it",
        "What was asked for is not in the installed version of torch.",
        "Choose another value for the flag that is named, or a cell with the version that is named.",
    ),
    (
        "RM563",
        "The ranks do not fit the request",
        "The number of ranks, of cards, of layers or of micro-batches does not allow this way to train in parallel.",
        "Change the number that is named.",
    ),
    (
        "RM564",
        "Started again as often as allowed",
        "The ranks ended each time, and as many restarts as --max-restarts allows are used up.",
        "Read the first error above; the run goes on from its last checkpoint with --resume auto.",
    ),
    (
        "RM565",
        "The ranks disagree",
        "The ranks were started with different settings, data or weights, so they cannot train one model.",
        "Start all ranks with the same command on the same files.",
    ),
    (
        "RM566",
        "No attention kernel is right",
        "The kernel that was asked for, or every one, returned wrong values or gradients on this card, or refused.",
        "Use --precision fp32, or a cell with another torch; the kernels and their errors are named.",
    ),
    (
        "RM567",
        "Cannot compile",
        "torch.compile fails here, or what it compiles computes something else than the model does.",
        "Use --compile auto or off.",
    ),
    (
        "RM568",
        "Another rank ended",
        "This rank waited for another one, and the connection broke: that one was killed, or ended with an error.",
        "Read the error of the rank that ended first; this one's is its consequence.",
    ),
    (
        "RM590",
        "No such probe",
        "A probe was named that the smoke suite does not have.",
        "Name one of those that `python -m trainer smoke --list` prints.",
    ),
    (
        "RM598",
        "Interrupted",
        "The run was stopped by Ctrl-C or by a signal; what is left is whole: checkpoints or nothing.",
        "Start it again when you like, with --resume auto where checkpoints were kept.",
    ),
    (
        "RM599",
        "An unexpected error",
        "The trainer met something it has no words for; this is a defect of the trainer.",
        "Report it with the file that holds the traceback.",
    ),
)

_OS_CODES = {
    errno.ENOSPC: "RM543",
    errno.EDQUOT: "RM543",
    errno.EROFS: "RM542",
    errno.EACCES: "RM541",
    errno.EPERM: "RM541",
    errno.ENOTDIR: "RM544",
    errno.EEXIST: "RM544",
    errno.ENOTEMPTY: "RM540",
    errno.EPIPE: "RM545",
}


class TrainerError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    @property
    def exit_status(self) -> int:
        """2: the caller can put it right. 1: a defect. 130: stopped by a signal. 75: stopped with a checkpoint."""
        return {"RM554": 75, "RM598": 130, "RM599": 1}.get(self.code, 2)

    def parts(self) -> dict[str, str]:
        """Return code, title and the known parts, as the fields of the JSON event."""
        named = {"what": self.what, "where": self.where, "why": self.why, "next": self.next}
        return {"code": self.code, "title": self.title} | {name: text for name, text in named.items() if text}

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        code, title, *rest = self.parts().items()
        indented = [f"  {name + ':':<6} " + text.replace("\n", "\n" + " " * 9) for name, text in rest]
        return "\n".join([f"{code[1]} {title[1]}", *indented])


def from_os_error(error: OSError) -> TrainerError | None:
    """Return the error in the catalog's words, or None where the catalog has no code for its errno."""
    if error.errno not in _OS_CODES:
        return None
    where = str(error.filename or "")
    return TrainerError(_OS_CODES[error.errno], what=str(error.strerror), where=where)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    hits = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"
