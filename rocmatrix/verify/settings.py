"""Container settings of an image, compared with the cell's recipe: user, command, environment and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rocmatrix.containers import label_integrity
from rocmatrix.matrix.matrix import Cell
from rocmatrix.verify.files.tree import TRAINER, VENV
from rocmatrix.verify.finding import Check, Finding

NAME = "settings"
CODE = "RM663"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As templates/Dockerfile.j2 has them; a test compares the two.
OWN = {
    "User": "10001:10001",
    "Entrypoint": ["python", "-P", "-m", "trainer"],
    "Cmd": ["--help"],
    "WorkingDir": "/training",
}
VARIABLES = {"PYTHONPATH": TRAINER, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "HOME": "/tmp"}
PLATFORM = ("linux", "amd64")
NONE = ("Volumes", "ExposedPorts", "Healthcheck", "OnBuild", "Shell", "StopSignal")


def check(attributes: Mapping[str, Any], cell: Cell, base: Mapping[str, Any] | None) -> Check:
    """Compare an image's settings as the engine reports them; `base` are those of its base image, if present.

    Args:
        attributes: the engine's inspection of the image, as JSON.
        base: settings of its base image; None where the engine does not hold it.
    """
    config: Mapping[str, Any] = attributes.get("Config") or {}
    platform = (attributes.get("Os", "linux"), attributes.get("Architecture", "amd64"))
    wrong = [] if platform == PLATFORM else [f"it is for {'/'.join(platform)}"]
    wrong += [*_own(config), *_inherited(config, base or {}), *_variables(config, cell, base)]
    findings = []
    if wrong:
        findings.append(Finding(code=CODE, what="settings that the cell's recipe does not make", places=tuple(wrong)))
    if not label_integrity.holds(attributes):
        findings.append(Finding(code=CODE, what=_unsealed(config), places=(label_integrity.LABEL,)))
    count = len(OWN) + len(NONE) + len(expected(cell, base))
    return Check(name=NAME, summary=f"{count} settings, and the seal", findings=tuple(findings))


def _unsealed(config: Mapping[str, Any]) -> str:
    sealed = label_integrity.LABEL in (config.get("Labels") or {})
    why = "changed or derived from after its build" if sealed else "not made by `./invokew build`"
    return f"labels that are not bound to its layers and settings: it was {why}"


def expected(cell: Cell, base: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the environment that an image of `cell` has."""
    inherited = _pairs((base or {}).get("Env"))
    path = f"{VENV}/bin:{inherited.get('PATH', DEFAULT_PATH)}"
    own = {variable.name: variable.value for variable in cell.environment}
    return inherited | {"PATH": path} | VARIABLES | own


def _pairs(env: Any) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in env or ())


def _own(config: Mapping[str, Any]) -> Iterable[str]:
    for name, value in OWN.items():
        if config.get(name) != value:
            yield f"{name} is {config.get(name)!r}, not {value!r}"


def _inherited(config: Mapping[str, Any], base: Mapping[str, Any]) -> Iterable[str]:
    for name in NONE:
        if (config.get(name) or None) != (base.get(name) or None):
            yield f"{name} is {config.get(name)!r}"


def _variables(config: Mapping[str, Any], cell: Cell, base: Mapping[str, Any] | None) -> Iterable[str]:
    required, found = expected(cell, base), config.get("Env") or []
    names = [pair.partition("=")[0] for pair in found]
    yield from (f"{name} is set twice" for name in sorted({name for name in names if names.count(name) > 1}))
    for name, value in _pairs(found).items():
        if required.get(name) != value:
            yield f"{name}={value}" + (f", not {required[name]}" if name in required else " is not the recipe's")
    yield from (f"{name} is not set" for name in required if name not in names)
