"""RM6xx: diagnosing, evidence, the nightly, bisecting and the dashboard."""

from __future__ import annotations

from rocmatrix.runtime.codes.entry import CatalogEntry, entries

RECORDS: tuple[CatalogEntry, ...] = entries(
    (
        "RM610",
        "There is no log to diagnose",
        "The file does not exist, cannot be opened, is a folder or is empty; or nothing was piped in.",
        "Name a log, or pipe one in: `... 2>&1 | ./invokew diagnose -`.",
    ),
    (
        "RM611",
        "The log cannot be unpacked",
        "It begins as a packed file does, but nothing could be unpacked from it; or it is a file of another kind, such "
        "as an archive, a picture, or a journal in its own form.",
        "Unpack it by hand to see what is left, fetch it again, or give its text.",
    ),
    (
        "RM612",
        "A benchmark failed",
        "A benchmark computed wrongly, ended without a figure, or nothing was measured. The others' figures stand.",
        "Read the failed rows, then the log; `./invokew bench --only NAME` measures one again.",
    ),
    (
        "RM620",
        "A run could not be recorded",
        "The job's own result stands; its record could not be written: the disk is full, or the place is read-only.",
        "Make room, or name another file with ROCMATRIX_EVIDENCE; the job itself need not be repeated.",
    ),
    (
        "RM621",
        "The evidence cannot be read",
        "The file is no evidence of this program: another database, of a newer version, damaged or edited by hand.",
        "Name another file with --evidence or ROCMATRIX_EVIDENCE, or move this one away.",
    ),
    (
        "RM622",
        "Evidence to be imported is refused",
        "The file is damaged, foreign, or holds a record whose content does not match its hash; nothing was imported.",
        "Ask for a fresh `./invokew evidence --export FILE`, and take the file as it was written.",
    ),
    (
        "RM630",
        "A night did not pass",
        "Some cells could not be built, proven or smoked, or did worse than on their last good night.",
        "Read the records of the cells that are named: `./invokew evidence --cell NAME`, `./invokew dashboard`.",
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
        "All that a night may remove (its own images and its builder's cache) was removed, and space is still short.",
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
        "Good and bad versions alternate",
        "No single step explains the failure, since good and bad cells follow each other; every change is listed.",
        "Look at each change by itself, or repeat the probe: it may fail now and then.",
    ),
    (
        "RM640",
        "The output folder is not a dashboard",
        "The folder holds files that this program did not write, and a dashboard replaces what it finds.",
        "Name an empty or a new folder with --out.",
    ),
    (
        "RM650",
        "The container was not started",
        "The engine could not make, inspect or start the job's container, so nothing ran; no cell is affected.",
        "Read the engine's message; `./invokew doctor` looks at devices and limits, `docker info` at the engine.",
    ),
    (
        "RM651",
        "The engine was lost while a job ran",
        "The connection broke off before the container's end was known, so the run is no evidence on the cell.",
        "Look at the engine (`systemctl status docker`), then run the job again.",
    ),
    (
        "RM652",
        "No image was both proven and smoked",
        "A night promotes only the image that its own records name as proven and smoked; the tag was not moved.",
        "Look at `./invokew evidence --cell NAME`: the candidate's tag was moved, or a record is missing.",
    ),
    (
        "RM653",
        "The folder is not a demo's",
        "A demo replaces an earlier one; a folder that holds anything else is left as it is.",
        "Name an empty or a new folder with --out.",
    ),
    (
        "RM654",
        "A part of the demo failed",
        "The page was written; the output of the part that failed is shown in it.",
        "Read that output, then run its command alone.",
    ),
    (
        "RM655",
        "No installed torch can be used",
        "With --use-installed-torch a Python of this machine needs torch and the packages that the trainer imports.",
        "Install what is missing with that Python's pip, or leave --use-installed-torch out.",
    ),
    (
        "RM656",
        "The training ended without an error of its own",
        "Its process was ended from outside or by a library, so that it could report nothing.",
        "Read the lines above and the log; `./invokew doctor` shows memory and limits of this host.",
    ),
    (
        "RM671",
        "Another night is running",
        "Two nights at once would move the same tags, use the same cards and remove each other's candidates.",
        "Let it end, or end the process that is named: the next call resumes it.",
    ),
    (
        "RM672",
        "A request to the container engine failed",
        "The container engine was reached, and then took too long, broke the connection off or refused a request.",
        "Look at the engine (`docker info`, `systemctl status docker`), then run the same command again.",
    ),
    (
        "RM677",
        "There is nothing to bundle for this cell",
        "No run, no build and no log of this machine names the cell that was asked for.",
        "Run `./invokew smoke --cell NAME` first, or leave --cell out: doctor and versions alone are of use, too.",
    ),
    (
        "RM678",
        "The bundle was shown and not written",
        "It is written after a yes at the terminal, or with --yes. Without a terminal no question is asked.",
        "Read what was shown, then give --yes.",
    ),
    (
        "RM679",
        "The bundle would name this machine or its user",
        "The redacted text still had a name, a secret variable's value or a private folder; nothing was written.",
        "Report which part is named, without its text; send `./invokew doctor --json` by hand after reading it.",
    ),
    (
        "RM684",
        "A log cannot be watched",
        "Only a plain file that grows can be watched: no folder, no packed file, no standard input.",
        "Name the file itself, or leave --watch out to diagnose what is there.",
    ),
    (
        "RM685",
        "A file was not changed",
        "A correction would not be safe: the file changed meanwhile, a link leads elsewhere, or the result has other "
        "findings than the corrected one is to have.",
        "Make the change by hand from the difference that was printed; the file is as it was.",
    ),
    (
        "RM686",
        "The named file is no report of doctor",
        "--doctor takes what `./invokew doctor --json` printed on the machine of the log; this could not be read so.",
        "Run `./invokew doctor --json > doctor.json` on that machine, and name the file.",
    ),
)
