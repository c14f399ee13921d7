"""The packages that pip or uv is asked for in a shell command, with the indexes that it names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from packaging.requirements import InvalidRequirement, Requirement

from rocmatrix.doctor.environment.dockerfile import INDEX
from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.shell.words import parts

_PIP = re.compile(r"(?:.*/)?(?:pip[\d.]*|uv)")
_INDEXES = ("--index-url", "-i", "--extra-index-url", "--index", "--default-index")
_OTHER = re.compile(r"^https?://(?!\S*(?:rocm|radeon|amd\.com|/whl/cpu))")  # one that may have torch for CUDA
_VARIABLE = re.compile(r"\$(?:\w+|\{[^{}]+\})")
_WHEEL_VERSION = re.compile(r"/[A-Za-z][\w.]*?-(\d[\d.]*)(?:(?:\+|%2B)[\w.]+)?-[^/]*\.whl(?:#.*)?$")
_OF_MAKERS = re.compile(r"//wheels\.vllm\.ai/(?:\S*/)?rocm")
# options whose value may be mistaken for a package
_VALUED = frozenset((
    "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-r", "--requirement", "-c", "--constraint", "-t",
    "--target", "--prefix", "--root", "--python", "-p", "--platform", "--index-strategy", "--config-settings", "-C",
    "--cache-dir", "--progress-bar", "--timeout", "--retries", "--trusted-host", "--no-binary", "--only-binary",
    "--default-index", "--index", "--torch-backend", "--src", "--upgrade-strategy", "--python-version", "--abi",
))  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Install:
    """One package that pip is asked for. `rocm` is the version of the ROCm index named, "" for another index.

    `extra`: another index is asked too, as PyPI is with --extra-index-url, and the highest version counts.
    `local`: the version itself names ROCm. `indexed`: an index or a folder of wheels is named. `alone`: without its
    dependencies. `upgrade`: a newer version replaces. `held`: a file of constraints gives the version. `by_url`: the
    address of the package itself is given, `of_pytorch`: one of PyTorch's. `versions`: those asked for, as written.
    `for_rocm`: the version or an index of the package's makers is that of their build for ROCm.
    """

    name: str
    exact: str | None
    newest: bool
    rocm: str | None
    where: str
    extra: bool = False
    local: bool = False
    indexed: bool = False
    alone: bool = False
    upgrade: bool = False
    held: bool = False
    by_url: bool = False
    of_pytorch: bool = False
    versions: str = ""
    for_rocm: bool = False


@lru_cache(maxsize=1 << 16)  # every rule on packages asks for them
def installs(command: Command) -> tuple[Install, ...]:
    """Return every package that a command installs with pip or uv."""
    return tuple(_installs(command))


def _installs(command: Command) -> Iterator[Install]:
    for words in parts(command.text, "install"):
        if "install" not in words or not any(_PIP.fullmatch(word) for word in words):
            continue
        rest = words[words.index("install") + 1 :]
        uv = words[0].rpartition("/")[2] == "uv"
        yield from _of_words(rest, command.where, uv=uv)


def _of_words(rest: Sequence[str], where: str, *, uv: bool) -> Iterator[Install]:
    index = next((match[1] for word in rest if (match := INDEX.search(word.partition("=")[2] or word))), None)
    options = {word.partition("=")[0] for word in rest if word.startswith("-")}
    backend = re.search(r"(?:^| )--torch-backend[= ](?:rocm(?P<rocm>[\d.]+)|auto)(?: |$)", " ".join(rest))
    index = index or (backend["rocm"] if backend else None)
    other = any("://" in word or "-index" in word for word in rest if not _is_package_url(word))
    other = other or any(_VARIABLE.fullmatch(word) for word in _own(rest))  # an index may be in it
    mixed = index is not None and _mixed(rest, options, uv=uv)
    for requirement in _requirements(rest):
        exact = re.fullmatch(r"==([\d.]+)(?:\+\S+)?", str(requirement.specifier)) or _WHEEL_VERSION.search(
            requirement.url or ""
        )
        local = re.search(r"\+rocm([\d.]+)", str(requirement.specifier))
        own = re.search(r"\+rocm(\d+\.\d+)", re.sub("%2B", "+", requirement.url or ""))
        rocm = index or (local[1] if local else own[1] if own else None) or ("" if other or requirement.url else None)
        yield Install(
            name=requirement.name.lower().replace("_", "-"),
            exact=exact[1] if exact else None,
            newest=not requirement.specifier and not requirement.url,
            rocm=rocm,
            where=where,
            extra=mixed,
            local=local is not None,
            indexed=other or backend is not None or bool(options & {"--find-links", "-f"}),
            alone="--no-deps" in options,
            by_url=requirement.url is not None,
            of_pytorch="pytorch.org/" in (requirement.url or ""),
            versions=str(requirement.specifier),
            for_rocm=local is not None or any(_OF_MAKERS.search(word) for word in rest),
            held=bool(options & {"-c", "--constraint", "--constraints", "--build-constraints"}),
            upgrade=bool(options & {"-U", "--upgrade", "--force-reinstall", "-I", "--ignore-installed"}),
        )


def _mixed(rest: Sequence[str], options: Collection[str], *, uv: bool) -> bool:
    """Return whether the highest version of an index of ROCm and of another one is taken: by pip of all, by uv of those
    that it asks for with unsafe-best-match."""
    if "--torch-backend" in options or (uv and not any("unsafe-best-match" in word for word in rest)):
        return False
    urls = [
        word.partition("=")[2] or after
        for word, after in zip(rest, (*rest[1:], ""), strict=True)
        if word.partition("=")[0] in _INDEXES
    ]
    replaced = bool({"--index-url", "-i", "--default-index"} & set(options))
    return any(_OTHER.search(url) for url in urls) if replaced else "--extra-index-url" in options


def _is_package_url(word: str) -> bool:
    return word.endswith(".whl") or "git+" in word or " @ " in word


def _own(rest: Sequence[str]) -> Iterator[str]:
    """Yield the words that are neither an option nor the value of one."""
    skip = False
    for word in rest:
        if skip or word.startswith("-"):
            skip = not skip and word in _VALUED
        else:
            yield word


def _requirements(rest: Sequence[str]) -> Iterator[Requirement]:
    for word in _own(rest):
        wheel = re.search(r"(?:^|/)([A-Za-z][\w.]*?)-\d[^/]*\.whl(?:#.*)?$", word)
        try:
            yield Requirement(f"{wheel[1]} @ {word}" if wheel else word)
        except InvalidRequirement:
            continue
