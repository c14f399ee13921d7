"""Nightly builds of torch: an index that has ended, a build that is deleted, a release that wins over all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from rocmatrix.doctor.environment.lint_input import Command, FileFinding
from rocmatrix.doctor.environment.packages.installs import installs
from rocmatrix.doctor.environment.shell.words import parts
from rocmatrix.matrix.matrix import Matrix

CHOICE = re.compile(r"\b(?:elif|else|case)\b")  # one of several that the caller chooses from
_INDEX = re.compile(r"download\.pytorch\.org/whl/nightly/rocm(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)(?![\d.])")
_EXTRA = re.compile(r"--extra-index-url[= ]\s*[\"']?https?://download\.pytorch\.org/whl/nightly/")
_DATED = re.compile(
    r"\b(?P<name>torch(?:vision|audio)?|pytorch-triton-rocm|triton-rocm)==(?P<version>[\d.]+\.dev(?P<date>20\d{6}))"
)
_KEPT = 2  # releases of ROCm that nightlies are built for at a time
_OF_TORCH = ("torch", "torchvision", "torchaudio")


def ended(command: Command, matrix: Matrix) -> Iterator[FileFinding]:
    """Yield the nightly index of a ROCm that gets no more builds."""
    match = _INDEX.search(command.text)
    if match is None or CHOICE.search(command.text):
        return
    served = {Version(row.rocm) for row in matrix.releases if row.rocm and "download.pytorch.org" in row.index}
    newest = sorted(served)[-_KEPT:]
    if Version(match[1]) < newest[0]:
        yield FileFinding(
            rule="nightly-ended", where=command.where, what=f"the nightly index of ROCm {match[1]}", severity="warning",
            truth="nightly builds are made for the newest releases of ROCm alone, and old ones are deleted: this index "
            "gets no new builds",
            instead=f"the index of a release, or nightly/rocm{newest[-1]}",
        )  # fmt: skip


def found(command: Command) -> Iterator[FileFinding]:
    """Yield nightly builds that a command asks for and does not get: of one day, or next to PyPI without --pre."""
    for words in parts(command.text, "/whl/nightly/"):
        text = " ".join(words)
        if "install" in words and "/whl/nightly/" in text:
            yield from _deleted(command, text)
            yield from _released(command, words)


def _deleted(command: Command, text: str) -> Iterator[FileFinding]:
    dated = _DATED.search(text)
    if dated is not None:
        yield FileFinding(
            rule="nightly-deleted", where=command.where, what=f"{dated['name']}=={dated['version']}",
            severity="warning",
            truth=f"nightly builds are deleted after about two months: that of {dated['date']} is gone then, and pip "
            "finds none",
            instead="a release with its index, or a copy of the wheel in a place of your own",
        )  # fmt: skip


def _released(command: Command, words: list[str]) -> Iterator[FileFinding]:
    text = " ".join(words)
    replaced = bool({"--index-url", "-i"} & {word.partition("=")[0] for word in words})
    if "--pre" in words or replaced or words[0].rpartition("/")[2] == "uv" or not _EXTRA.search(text):
        return
    part = (one for one in installs(command) if one.name in _OF_TORCH and not one.exact and ".dev" not in one.versions)
    first = next(part, None)
    if first is not None:
        yield FileFinding(
            rule="torch-index-next-to-pypi", where=command.where, severity="warning",
            what=f"{first.name}{first.versions} and a nightly index",
            truth="without --pre pip leaves nightly builds out where another index has a release: PyPI's, which is for "
            "CUDA",
            instead="--pre and --index-url in a command of its own, or the index of a release",
        )  # fmt: skip
