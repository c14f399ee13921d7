"""RM66x, RM680: the bytes of an image against what it was to be made of."""

from __future__ import annotations

from rocmatrix.runtime.codes.entry import CatalogEntry, entries

BYTES: tuple[CatalogEntry, ...] = entries(
    (
        "RM660",
        "Installed files are not those of the locked wheels",
        "A file of the environment has other bytes, mode or owner than its wheel gives it, is missing, or no locked "
        "wheel brings it; or the locked wheels are not at hand to compare with.",
        "Build the image again. Where wheels are missing, `./invokew build` fetches them, or name their folder with "
        "--wheelhouse.",
    ),
    (
        "RM661",
        "The trainer differs from the checkout",
        "The image's trainer has other files or bytes than the trainer of this checkout.",
        "Build the image again from this checkout, or prove it from the commit that it was built from.",
    ),
    (
        "RM662",
        "System files are not the base's",
        "Layers or files outside the environment are neither those of the base image nor what Debian's package lists "
        "bring, or /etc/passwd and /etc/shadow allow a login.",
        "Build the image again on a base that you trust; do not run this one.",
    ),
    (
        "RM663",
        "The image's settings are not the cell's",
        "User, command, environment, volumes or ports differ from the cell's recipe, or the labels are not bound to "
        "the layers: the image was changed after it was built, or derived from the cell's own.",
        "Build the image again; an image of your own on top of a cell's needs a name of its own.",
    ),
    (
        "RM664",
        "Byte code is not its source's",
        "Compiled files differ from what the image's Python makes of their sources, or could not be compared.",
        "Build the image again; Python would run the compiled files without reading their sources.",
    ),
    (
        "RM680",
        "A build of the same inputs makes another image",
        "Built once more without a cache, layers or settings differ, or this checkout cannot make the image that is "
        "there: packages of the base's archive changed meanwhile, or one of the two was not made by its recipe. "
        "The record of the proof is that of the files alone.",
        "Build the image again and prove that one. A base that holds its packages already, named by its digest with "
        "--base, does not depend on an archive.",
    ),
)
