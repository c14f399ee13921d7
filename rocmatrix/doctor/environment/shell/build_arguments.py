"""Build arguments of a Dockerfile: those that the commands of a stage find empty, and those of CUDA."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from rocmatrix.doctor.environment.lint_input import Command, FileFinding

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")
# ${NAME:+x} and ${NAME:?x} provide for an empty one; $$ and \$ are no references
_REFERENCE = re.compile(r"(?<![\\$])\$(?:\{(?P<name>\w+)(?:[%#/^,][^{}]*)?\}|(?P<plain>[A-Za-z_]\w*))")
_SEPARATOR = re.compile(r"&&|\|\||;")
_PRINTS = re.compile(r"\s*(?:echo|printf)\b[^|>]*$")  # prints only: an empty name does no harm
_READS_FILE = re.compile(r"os-release|(?:^|[\s;&])(?:source|\.)\s+\S*\.env\b")  # a file that sets names of its own
# the builder gives these to every command, or common base images set them
_GIVEN = re.compile(
    r"(?i:(?:https?|ftp|no|all)_proxy)|PATH|HOME|LANG|LC_ALL|(?:PYTHON|NODE|GOLANG|CUDA)_VERSION|JAVA_HOME|CONDA_DIR"
)
_MAY_BE_GIVEN = ("PYTORCH_ROCM_ARCH", "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "MAX_JOBS")  # images with torch set them


def outside_stage(command: Command, names: Collection[str]) -> Iterator[FileFinding]:
    """Yield names that a RUN uses although its stage does not have them.

    Args:
        names: what is declared as ARG before the first FROM, and not known in the stage where the command stands.
    """
    text = _QUOTED.sub(lambda part: "''" if part[0].startswith("'") else part[0], command.text)
    if _READS_FILE.search(text):
        return
    parts = [part for part in _SEPARATOR.split(text) if not _PRINTS.match(part)]
    used = [match["name"] or match["plain"] for part in parts for match in _REFERENCE.finditer(part)]
    for name in dict.fromkeys(used):
        if name in names and not _GIVEN.fullmatch(name) and not _is_set(name, text):
            yield FileFinding(
                rule="argument-outside-stage", where=command.where, what=f"${name}",
                severity="note" if name in _MAY_BE_GIVEN else "warning",
                truth=f"ARG {name} stands before FROM, where the lines FROM alone read it; in the stage it is empty, "
                "unless the image sets it",
                instead=f"declare ARG {name} again after FROM",
            )  # fmt: skip


def _is_set(name: str, text: str) -> bool:
    """Return whether a command sets a variable itself; NAME=$NAME hands on what it lacks."""
    word = re.escape(name)
    assigned = (
        rf"(?:^|[\s;&(]){word}=(?![\"']?\$\{{?{word}\b)|\b(?:for|read|printf -v)\b[^;&|]*\b{word}\b|\benv={word}\b"
    )
    return re.search(assigned, text) is not None


def of_cuda(arguments: Mapping[str, str], where: str) -> Iterator[FileFinding]:
    """Yield the list of CUDA's architectures among the arguments of a stage.

    Args:
        arguments: their values by name.
        where: file and line of the last of them.
    """
    listed = arguments.get("TORCH_CUDA_ARCH_LIST", "")
    if re.search(r"\d\.\d", listed):
        yield FileFinding(
            rule="cuda-architectures", where=where, what=f"TORCH_CUDA_ARCH_LIST={listed[:60]}", severity="note",
            truth="it lists CUDA's architectures, and a build of an extension for ROCm reads PYTORCH_ROCM_ARCH",
            instead="PYTORCH_ROCM_ARCH with the names of the cards' architectures, gfx90a;gfx1100",
        )  # fmt: skip
