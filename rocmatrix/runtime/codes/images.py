"""RM2xx: the engine, building, launching and proving images."""

from __future__ import annotations

from rocmatrix.runtime.codes.entry import CatalogEntry, entries

IMAGES: tuple[CatalogEntry, ...] = entries(
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
        "A file is damaged, of an unknown format, or holds code for another architecture than its name states.",
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
        "Leave it out, or build it from source in an image derived from the cell's; the message gives the steps.",
    ),
    (
        "RM223",
        "The image's tag was moved while it was built",
        "Another program gave the tag to another image. What was built is on record by its id, and has no tag.",
        "Repeat the command when that program has ended, or name the image by its id: `docker tag ID TAG`.",
    ),
)
