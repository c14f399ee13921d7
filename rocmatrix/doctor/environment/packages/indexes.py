"""Which index torch and what belongs to it come from: one hides another, or is of CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmatrix.doctor.environment.intent import file_is_for_amd, file_name, means_amd
from rocmatrix.doctor.environment.lint_input import FileFinding, Fix, Subject
from rocmatrix.doctor.environment.packages.installs import Install
from rocmatrix.doctor.environment.packages.requirement import PYTORCH_INDEX, separately
from rocmatrix.matrix.matrix import Matrix

_NO_IMAGE = ("a conda environment", "the extra ")
_TORCHVISION_AHEAD = 15  # torch 2.n goes with torchvision 0.(n + 15)
_BUILT_WITH_IT = ("torchvision", "torchaudio")
_WHOLE = Version("5.4.2")  # PyTorch's own command names it with --index-url: it has all that torch needs, too
# pip's, and no other option for an index
_ONE_EXTRA = re.compile(
    r"^(?!.*(?:\buv\b|--index|--default-index| -i |--find-links| -f ))[^&|;]*\s--extra-index-url[ =]"
)
_OLD_BY = 7  # minor releases of torch by which an index lags when it is worth a note
_OF_ROCM = re.compile(
    r"rocm|amd\.com|radeon|\$", re.IGNORECASE
)  # in the address of an index; a variable may be anything
_CONFIGURED = re.compile(r"pip3? config (?:--\w+ )?set \S*index-url\s+(?P<index>\S+)")
_ELSEWHERE = re.compile(r"pip config set|conda|\$\{?\w*(?:INDEX|URL)")
_OTHER_MAKER = re.compile(r"(?:^|/)intel/|oneapi|arm64|aarch64|ascend", re.IGNORECASE)  # of whom no AMD card is asked
_VENV = re.compile(
    r"(?:python[\d.]* -m venv|virtualenv|uv venv)(?: +-{1,2}[\w-]+(?:[= ]+[\d.]+(?= ))?)*"
    r" +(?P<path>[\w./$-]+)(?: +--system-site-packages)?"
)
_OF_IMAGE = ("/opt/venv",)  # where AMD's images have torch: a new one there keeps what is in it
_WITHOUT_TORCH = re.compile(r"^(?:docker\.io/)?rocm/(?:dev-|rocm-terminal|rocm-build)")
_WITH_TORCH = re.compile(r"(?:^|/)rocm/(?:pytorch|vllm|sgl)[\w-]*(?::|@|$)")


def found(subject: Subject, installs: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    """Yield torch from a wrong index, and companions that are not torch's.

    Args:
        installs: what the commands of the subject install, in their order.
    """
    torch = next((one for one in installs if one.name == "torch"), None)
    if torch is not None:
        yield from _default_index(subject, torch, installs)
        yield from _next_to_pypi(subject, torch, installs, matrix)
        yield from _without_index(subject, torch)
        yield from _vision(torch, installs)
    yield from _in_new_environment(subject, installs)
    yield from _replaced(subject, installs)
    yield from _companions(subject, installs)
    yield from _old(installs, matrix)


def _default_index(subject: Subject, torch: Install, installs: Sequence[Install]) -> Iterator[FileFinding]:
    bare = subject.image is not None and (not is_rocm(subject.image) or bool(_WITHOUT_TORCH.search(subject.image)))
    plain = subject.image is not None and (subject.image.startswith(_NO_IMAGE) or bare)
    if _OTHER_MAKER.search(subject.image or ""):
        return
    rocm = (subject.for_amd or file_is_for_amd(subject)) and subject.image is None
    plain = plain and not _of_cuda(subject.image or "") and not _rocm_is_default(subject)
    if torch.rocm is None and not torch.indexed and (plain or (rocm and not _has_index_elsewhere(subject))):
        yield FileFinding(
            rule="torch-from-default-index", where=torch.where,
            what=f"pip install torch on {subject.image or subject.name}", severity="error",
            truth="the default package index serves torch for CUDA (or the processor); no AMD card is seen by it",
            instead=f"{_with_index(installs)}, or build on a ROCm image",
        )  # fmt: skip


def _rocm_is_default(subject: Subject) -> bool:
    """Return whether a variable or pip's own settings make an index of ROCm the one that is asked."""
    named = [
        row.value for row in subject.variables if row.name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
    ]
    named += [row.value for row in subject.variables if row.name == "UV_TORCH_BACKEND"]
    named += [found["index"] for row in subject.commands for found in _CONFIGURED.finditer(row.text)]
    return any(_OF_ROCM.search(value) for value in named)


def _with_index(installs: Sequence[Install]) -> str:
    """Return how torch gets its index; next to other packages that index would replace PyPI for them too."""
    index = f"{PYTORCH_INDEX}rocmX.Y"
    mixed = any(one.name not in ("torch", *_BUILT_WITH_IT) for one in installs)
    return separately("torch", index) if mixed else f"add --index-url {index}"


def _has_index_elsewhere(subject: Subject) -> bool:
    """Return whether a variable names an index, or another command of the subject has put torch for ROCm there."""
    named = any(row.name.startswith(("PIP_", "UV_")) and "INDEX" in row.name for row in subject.variables)
    return named or any(_ELSEWHERE.search(row.text) for row in subject.commands)


def _next_to_pypi(
    subject: Subject, torch: Install, installs: Sequence[Install], matrix: Matrix
) -> Iterator[FileFinding]:
    newer = _newer_on_pypi(torch, matrix) if torch.extra else None
    if newer is not None:
        alone = all(one.name in ("torch", *_BUILT_WITH_IT) for one in installs if one.where == torch.where)
        text = " ".join(command.text for command in subject.commands if command.where == torch.where)
        alone = alone and not file_name(subject).endswith((".txt", ".in"))  # whose index counts for the whole file
        safe = alone and _ONE_EXTRA.search(text) and Version(torch.rocm or "0") >= _WHOLE
        yield FileFinding(
            rule="torch-index-next-to-pypi", where=torch.where, severity="warning" if newer else "note",
            what=f"torch{torch.versions} from PyPI or the index of ROCm {torch.rocm}",
            truth="pip takes the highest version of all indexes, as uv does with unsafe-best-match, and "
            + ("PyPI's torch for CUDA is newer" if newer else "PyPI may have a newer torch, for CUDA"),
            instead=f"--index-url for torch in a command of its own, or pin torch==X.Y.Z+rocm{torch.rocm}",
            fix=Fix(where=torch.where, before="--extra-index-url", after="--index-url") if newer and safe else None,
        )  # fmt: skip


def _newer_on_pypi(torch: Install, matrix: Matrix) -> bool | None:
    """Return whether PyPI has a newer torch of those that are asked for; None where their versions are given."""
    if torch.exact or "+" in torch.versions or not (torch.newest or torch.versions):
        return None
    versions = SpecifierSet(torch.versions)
    fitting = [(Version(row.torch), Version(row.rocm)) for row in matrix.releases if row.rocm and row.torch in versions]
    served = [version for version, rocm in fitting if rocm == Version(torch.rocm or "0")]
    if not fitting or Version(torch.rocm or "0") > max(rocm for _, rocm in fitting):
        return False
    above = not served or max(fitting)[0] > max(served)
    return above if torch.newest or above else None


def _without_index(subject: Subject, torch: Install) -> Iterator[FileFinding]:
    named = any(row.name.startswith(("PIP_", "UV_")) and "INDEX" in row.name for row in subject.variables)
    constraints = "constraint" in file_name(subject)  # which install nothing: the command that names them has the index
    if torch.local and not torch.indexed and not named and not constraints and subject.image is None:
        yield FileFinding(
            rule="local-version-without-index", where=torch.where, what="torch with +rocm, and no index",
            severity="note" if file_name(subject).endswith((".txt", ".in")) else "warning",
            truth="PyPI has no version with +rocm: pip finds none, unless the caller names the index",
            instead=_index_of_local(torch.rocm or ""),
        )  # fmt: skip


def _index_of_local(rocm: str) -> str:
    """Return the option that finds a version with +rocm; one that goes on behind the release is AMD's own build."""
    if rocm.endswith("."):
        return "--find-links with the folder of that release below https://repo.radeon.com/rocm/manylinux/"
    return f"--extra-index-url {PYTORCH_INDEX}rocm{rocm} in the same file"


def _vision(torch: Install, installs: Sequence[Install]) -> Iterator[FileFinding]:
    vision = next((one for one in installs if one.name == "torchvision"), None)
    if vision and torch.exact and vision.exact and not _belongs(torch.exact, vision.exact):
        yield FileFinding(
            rule="torchvision-of-another-torch", where=vision.where,
            what=f"torch {torch.exact}, torchvision {vision.exact}",
            # AMD's own wheels of one folder may be of other pairs
            severity="note" if torch.by_url and vision.by_url and not torch.of_pytorch else "error",
            truth=f"torchvision of another torch is refused or crashes (operator torchvision::nms does not exist); "
            f"torch {torch.exact} goes with torchvision 0.{int(torch.exact.split('.')[1]) + _TORCHVISION_AHEAD}",
            instead="install both from one index in one command, without a version of torchvision",
        )  # fmt: skip


def _belongs(torch: str, vision: str) -> bool:
    one, other = torch.split("."), vision.split(".")
    return one[0] != "2" or len(other) < 2 or int(one[1]) + _TORCHVISION_AHEAD == int(other[1])


def _by_partner(installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield torchvision or torchaudio of PyTorch's index without a version: each asks for the torch of its release."""
    with_torch = {one.where for one in installs if one.name == "torch"}
    partners = [one for one in installs if one.name in ("torchvision", "torchaudio") and one.where not in with_torch]
    for one in partners:
        if one.rocm and one.newest and not (one.alone or one.held):
            yield FileFinding(
                rule="torch-replaced", where=one.where, what=f"{one.name} of ROCm {one.rocm}'s index",
                severity="warning",
                truth=f"the newest {one.name} there asks for the torch of its own release, and pip puts that in the "
                "place of the image's own, which AMD built",
                instead=f"the image's {one.name}, or --no-deps with the version that belongs to its torch",
            )  # fmt: skip


def _in_new_environment(subject: Subject, installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield a new virtual environment in an image with torch, that is used and gets no torch of its own."""
    if not _WITH_TORCH.search(subject.image or "") or any(one.name in ("torch", "vllm") for one in installs):
        return
    values = " ".join([row.value for row in subject.variables] + [command.text for command in subject.commands])
    for command in subject.commands:
        made = _VENV.search(command.text)
        if made is None or "--system-site-packages" in made[0] or made["path"].rstrip("/") in _OF_IMAGE:
            continue
        listed = re.search(r"-r +\S|--requirement|\buv sync\b|pip[\d.]* install (?:-\S+ )*\.", values)
        if f"{made['path'].rstrip('/')}/bin" in values:
            yield FileFinding(
                rule="torch-hidden-by-venv", where=command.where, what=made[0].strip(),
                severity="note" if listed else "warning",
                truth="a new environment does not see the packages of the image: its torch for ROCm is hidden, and pip "
                "brings the one for CUDA where something asks for torch",
                instead="--system-site-packages, or the Python of the image",
            )  # fmt: skip


def _replaced(subject: Subject, installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield a torch that is put over the one for ROCm: of the image, or of a command before."""
    if _rocm_is_default(subject):
        return
    before = bool(_WITH_TORCH.search(subject.image or ""))
    if before:
        yield from _by_partner(installs)
    for one in installs:
        if one.name != "torch":
            continue
        if before and one.rocm is None and not one.indexed and (one.exact or one.upgrade):
            yield FileFinding(
                rule="torch-replaced", where=one.where, what=f"torch{'==' + one.exact if one.exact else ' --upgrade'}",
                severity="error",
                truth="torch for ROCm is there already; pip replaces it by that of the default index, which is CUDA's",
                instead="leave torch out, or name the index of its ROCm",
            )  # fmt: skip
        before = before or bool(one.rocm)


def _companions(subject: Subject, installs: Sequence[Install]) -> Iterator[FileFinding]:
    """Yield torchvision and torchaudio from the default index where torch is, or has to be, of ROCm."""
    torch = [one for one in installs if one.name == "torch"]
    of_rocm = any(one.rocm for one in torch) or (not torch and subject.for_amd and subject.image is not None)
    reported = {one.where for one in torch if not one.rocm}
    for one in installs:
        if (
            of_rocm
            and one.where not in reported
            and one.name in _BUILT_WITH_IT
            and one.rocm is None
            and not one.indexed
            and not one.extra
        ):
            yield FileFinding(
                rule="companion-from-default-index", where=one.where, what=one.name, severity="warning",
                truth=f"{one.name} of the default index is built for CUDA; its operators fail with torch for ROCm",
                instead=f"{one.name} in the command and from the index that torch comes from",
            )  # fmt: skip


def _old(installs: Sequence[Install], matrix: Matrix) -> Iterator[FileFinding]:
    newest = max(Version(row.torch) for row in matrix.releases)
    for one in installs:
        served = [Version(row.torch) for row in matrix.releases if one.rocm and row.rocm == one.rocm]
        if one.name == "torch" and served and max(served).minor + _OLD_BY < newest.minor:
            yield FileFinding(
                rule="rocm-release-old", where=one.where, what=f"the index of ROCm {one.rocm}", severity="note",
                truth=f"its newest torch is {max(served)}; {newest} is out, for newer ROCm",
                instead="a newer index, as far as the card's architecture is in its wheels (./invokew explain)",
            )  # fmt: skip


def is_rocm(image: str) -> bool:
    """Return whether an image's name states that it holds ROCm, or may: a variable may be anything."""
    return bool(re.search(r"rocm|amd|hip|gfx|\$", image, re.IGNORECASE)) or image == "scratch"


def refuses_cuda(subject: Subject) -> bool:
    """Return whether packages of CUDA are out of place in a subject."""
    return means_amd(subject) and not (subject.image is not None and _of_cuda(subject.image))


def _of_cuda(image: str) -> bool:
    return bool(re.search(r"nvidia|cuda", image))
