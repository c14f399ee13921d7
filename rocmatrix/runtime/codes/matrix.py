"""RM0xx: the matrix and resolving. RM1xx: rendering and locks."""

from __future__ import annotations

from rocmatrix.runtime.codes.entry import CatalogEntry, entries

MATRIX: tuple[CatalogEntry, ...] = entries(
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
        "The axes of a request exclude each other",
        "Every name exists, but two of them contradict each other, or no release was ever built with all of them.",
        "Drop or change one of the axes; the nearest cells are named.",
    ),
    (
        "RM012",
        "The combination is known to be broken",
        "A rule of the matrix, with its source, states that this combination does not work.",
        "Use the nearest working cell that is named, or read the rule's source; `--force` overrides the rule.",
    ),
    (
        "RM013",
        "A companion package is known to be broken there",
        "A rule of matrix/companions.yaml, with its source, states that the package does not work on this combination.",
        "Leave the package out, or take a cell for which no rule calls it broken; the message names one if there is.",
    ),
    (
        "RM014",
        "No image can be made of the release",
        "No rule calls it broken, but no base image brings a Python that it was built for, or no wheel of it is known.",
        "Leave --python out or take another; or take one of the nearest cells, which are named.",
    ),
    (
        "RM015",
        "The cell is written already",
        "`./invokew cell add` writes a derived cell to matrix.yaml, which already has this one.",
        "Edit its entry in matrix.yaml, or name other axes.",
    ),
    (
        "RM016",
        "Companions are in images only",
        "A native run takes the cell's own locked wheels, and the packages of --with are not among them.",
        "Run it in the container, or leave --with out.",
    ),
    (
        "RM017",
        "A requirements file cannot be used",
        "A line of the file of --with-requirements is no requirement, asks for what no index serves with a hash, "
        "or the file is not here.",
        "Correct the line that is named; released packages by name and bounds are taken, as pip writes them.",
    ),
    (
        "RM018",
        "A requirements file is against the cell",
        "It asks for another version of a package that the cell holds, or for other bytes than the index serves.",
        "Loosen the line that is named, or take a cell that holds what it asks for.",
    ),
    (
        "RM101",
        "A rendered file has drifted",
        "A committed file under images/, compose/ or docs/ differs from what matrix.yaml renders.",
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
        "RM110",
        "An added package would write over the cell's own files",
        "A wheel that was added holds a file or a program that a wheel of the cell installs, such as one of torch.",
        "Leave the package out; it is not built for use next to this torch.",
    ),
    (
        "RM111",
        "A variable cannot be passed on",
        "What --env or a line of --env-file holds is no NAME=VALUE, or its value cannot be handed to an engine.",
        "Correct the place that is named; its value is not printed.",
    ),
    (
        "RM112",
        "A port cannot be published",
        "--port takes the number of a port, or HOST:CONTAINER; it is published on the loopback address alone.",
        "Give numbers from 1 to 65535.",
    ),
    (
        "RM113",
        "The base has another Python than the lock",
        "The wheels are locked for the Python of the cell's own base, and the base that was named brings another.",
        "Take a base of the same distribution, or --python with the version that the base brings.",
    ),
    (
        "RM114",
        "The package index's torch is not wanted",
        "The small CPU build of torch cannot be fetched here, and the larger one was declined.",
        "Let pip reach download.pytorch.org or a mirror of it (PIP_FIND_LINKS), give --use-installed-torch, or set "
        "ROCMATRIX_PLAIN_WHEELS=yes.",
    ),
    (
        "RM115",
        "No index answered",
        "Every index that was asked for newer versions failed to answer, so nothing is known of them.",
        "Run it again where the indexes that are named can be reached, or leave --online out.",
    ),
)
