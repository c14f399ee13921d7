"""Facts for a report: those that the log states, and those of this host where the failure was here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rocmatrix.diagnosis.diagnosis import Diagnosis
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.host.hardware import Hardware
from rocmatrix.matrix.architecture import Architecture

FROM_LOG, FROM_HOST, REQUESTED = "from the log", "of this host", "as requested by --gpu or --cell"
Facts = Mapping[str, tuple[str, str]]
Cards = Mapping[str, Architecture]

_SIGN = r"(?:==|[:=]? {1,3}|[:=])v?"
_NUMBER = r"(\d{1,2}\.\d{1,2}(?:\.[\w.+]{1,40})?)"
_VERSIONS = {
    "torch": re.compile(rf"\b(?:py)?torch(?:[ _]version)?{_SIGN}{_NUMBER}", re.IGNORECASE),
    "vllm": re.compile(rf"\bvllm(?:[ _]version)?{_SIGN}{_NUMBER}", re.IGNORECASE),
    "triton": re.compile(rf"\btriton(?:-rocm)?{_SIGN}{_NUMBER}", re.IGNORECASE),
    "transformers": re.compile(rf"\btransformers{_SIGN}{_NUMBER}", re.IGNORECASE),
    "Python": re.compile(r"\bpython(?: version)?(?:[:=]? {1,3}|/)?(3\.\d{1,2}(?:\.\d{1,2})?)\b", re.IGNORECASE),
}
_PROGRAMS = (
    r"(?:python3?|docker|podman|torchrun|accelerate|vllm|ollama|pip3?|cmake|make|llama-\w{1,30}|\./[\w./-]{1,80})"
)
_PROMPT = r"(?:\([\w.-]{1,40}\) ?)?(?:[\w.@~:/-]{0,80}[$#] |\+ )"
_ONE = {
    "ollama": re.compile(
        r"ollama[^\n]{0,60}?version(?: is)?[ :=\"]{1,3}(\d{1,2}\.\d{1,3}\.[\w.-]{1,30})", re.IGNORECASE
    ),
    "llama": re.compile(r"^.{0,40}(?:build|version): ?(b?\d{3,6} ?\([0-9a-f]{6,12}\))", re.IGNORECASE | re.MULTILINE),
    "kernel": re.compile(r"\bLinux version ([\w.+~-]{3,80})", re.IGNORECASE),
    "command": re.compile(rf"^{_PROMPT}((?:[\w=./:,-]{{1,120}} ){{0,6}}{_PROGRAMS}\b.{{0,300}})", re.MULTILINE),
    "backend": re.compile(r"\b(ROCm|HIP|Vulkan)\d? (?:backend|devices?:)", re.IGNORECASE),
}
_COMPONENTS = (
    ("hipBLASLt", "hipblaslt"), ("rocBLAS", "rocblas"), ("MIOpen", "miopen"), ("rccl", "nccl"), ("Tensile", "tensile"),
    ("rocFFT", "rocfft"), ("rocSPARSE", "rocsparse"), ("composable_kernel", "composable_kernel"),
    ("rocm_smi_lib", "rocm_smi"), ("amdsmi", "amdsmi"), ("ROCR-Runtime", "hsa_"), ("AMDMIGraphX", "migraphx"),
    ("HIPIFY", "hipify"), ("llvm-project", "clang"), ("HIP", "hip"),
)  # fmt: skip


def known(text: str, found: Diagnosis, cards: Cards, *, requested: bool, host: Hardware) -> Facts:
    """Return what log, request and host state; the log comes first.

    This host counts only where the log can be its own: no card or cell was requested, and the log names no architecture
    or one of this host.

    Args:
        text: lines of the log, as many as were kept.
        requested: whether --gpu or --cell was given.
    """
    stated, named = of_log(text, found, cards), found.stated.others
    if requested:
        return {**_of_context(found.here, cards, REQUESTED), **stated}
    is_own = not named or not set(named).isdisjoint(host.architectures)
    return {**(of_host(host, cards) if is_own else {}), **stated}


def _of_context(context: HostContext, cards: Cards, origin: str) -> Facts:
    values = {
        "rocm": context.rocm,
        "cards": _card(context.architecture, cards) if context.architecture else None,
    }
    return {name: (value, origin) for name, value in values.items() if value}


def of_log(text: str, found: Diagnosis, cards: Cards) -> Facts:
    """Return what the log states, by the name of the fact.

    Args:
        text: lines of the log, as many as were kept.
    """
    facts: dict[str, tuple[str, str]] = {}
    versions = {name: match[1] for name, form in _VERSIONS.items() if (match := form.search(text))}
    if found.stated.torch and found.stated.rocm:
        versions["torch"] = f"{found.stated.torch}+rocm{found.stated.rocm}"
    if versions:
        facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions.items()), FROM_LOG
    facts |= _of_context(found.stated, cards, FROM_LOG)
    facts |= {name: (match[1].strip(), FROM_LOG) for name, form in _ONE.items() if (match := form.search(text))}
    seen = found.best.text.lower() if found.best else ""
    component = next((name for name, word in _COMPONENTS if word in seen), None)
    return facts | ({"component": (component, FROM_LOG)} if component else {})


def of_host(hardware: Hardware, cards: Cards, root: Path = Path("/")) -> Facts:
    """Return what this host shows; empty where it has no AMD card, since the log is of another machine then.

    Args:
        root: folder that stands for / of the machine.
    """
    if not hardware.architectures:
        return {}
    names = [_card(name, cards) for name in hardware.architectures]
    facts: dict[str, str | None] = {
        "cards": ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)),
        "kernel": hardware.kernel,
        "driver": _driver(hardware),
        "system": _first(root / "etc/os-release", r'^PRETTY_NAME="?([^"\n]{1,100})'),
        "processor": _first(root / "proc/cpuinfo", r"^model name\s*: ([^\n]{1,100})"),
        "rocm": _first(root / "opt/rocm/.info/version", r"^([\d.]{3,20})"),
    }
    return {name: (value, FROM_HOST) for name, value in facts.items() if value}


def _card(name: str, cards: Cards) -> str:
    known = cards.get(name)
    return f"{name} ({' or '.join(known.cards[:3])})" if known and known.cards else name


def _driver(hardware: Hardware) -> str | None:
    if hardware.driver is None:
        return None
    return f"amdgpu {hardware.driver.version or ''} of {'DKMS' if hardware.driver.origin == 'dkms' else 'the kernel'}"


def _first(path: Path, form: str) -> str | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(form, text, re.MULTILINE)
    return match[1].strip() if match else None
