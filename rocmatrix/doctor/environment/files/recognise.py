"""Any file of settings as subjects, by its name and form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import yaml

from rocmatrix.doctor.environment import compose, dockerfile, scripts
from rocmatrix.doctor.environment.dockerfile import read_text
from rocmatrix.doctor.environment.files import definition, manifests, poetry, projects, pyproject, units, workflows
from rocmatrix.doctor.environment.files.machines import nixos, proxmox, tasks, windows
from rocmatrix.doctor.environment.files.training import keys as training
from rocmatrix.doctor.environment.lint_input import Subject
from rocmatrix.doctor.environment.shell import blocks, heredocs, page_blocks
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime.errors import RocmatrixError

_Reader = Callable[[Path], tuple[Subject, ...]]
# the first line of a Dockerfile and of a definition file, less comments and empty lines
_DOCKERFILE = re.compile(r"(?:ARG +\w+(?:=\S*)?|FROM +(?:--\S+ +)?\S+(?: +AS +\S+)?)\s*$", re.IGNORECASE)
_DEFINITION = re.compile(r"bootstrap *:", re.IGNORECASE)
_YAML = (".yml", ".yaml")
_UNITS = (".container", ".service", ".conf")
_LISTS = (".txt", ".in")
_MOST = 100  # texts that a script writes; each is read with the lines above it
_PAGES, _RECIPES = (".md", ".markdown", ".rst"), ("makefile", "gnumakefile", "justfile")
# languages of a page's code blocks
_SHELLS = ("bash", "sh", "shell", "zsh", "console", "shell-session", "terminal")
_IMAGES, _YAML_BLOCKS = ("dockerfile", "containerfile", "docker"), ("yaml", "yml")
# a page shows parts of scripts, and a block begins below line 1; a Makefile has variables of its own
_OF_WHOLE_SCRIPTS = ("slurm-without-shebang", "variable-never-set")
_EXAMPLE = re.compile(r"(?<=[a-z])\.(?:template|tmpl|tpl|example|sample|dist|default)$")
_PROGRAMS = (".py", ".go", ".rs", ".js", ".ts", ".java", ".rb", ".md", ".json")  # about Dockerfiles
_SCRIPTS = (".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".job", ".pbs", *_LISTS)


def subjects(path: Path, *, shell: Mapping[str, str], matrix: Matrix | None = None) -> tuple[Subject, ...]:
    """Return what a file sets, installs and starts. Raises RM310 where it cannot be read, RM311 where its form is none
    of those that are known.

    Args:
        path: a Dockerfile, a compose file, a script, a requirements, pyproject or conda file, a manifest, a workflow or
            a pipeline of GitLab, an env file, a unit of Podman or systemd, a devcontainer.json, a definition file of
            Apptainer, the code blocks of a page in Markdown or reStructuredText, a notebook, the recipes of a Makefile
            or justfile, tasks of Ansible, a module of NixOS, a guest of Proxmox VE, a batch file or
            script of PowerShell, or the settings of a training. `.example` and the like behind a name do not count.
        shell: variables of the shell by name, for compose files.
    """
    if path.suffix.lower() in _PAGES:
        return tuple(one for block in _blocks_of(path) for one in _of_block(path, block, shell))
    name, ending = _usual(path.name.lower())
    read = _reader(name, ending)
    if read is None and ending in _YAML:
        return _of_yaml(path, shell, matrix)
    read = read or _reader_of_text(read_text(path))
    if read is None:
        raise _unknown(path)
    if ending == ".conf" and proxmox.is_guest(read_text(path)):
        read = proxmox.of_guest
    found = read(path)
    if read is scripts.of_file and path.suffix not in _LISTS:
        texts = islice(heredocs.heredocs(read_text(path)), _MOST)
        found += tuple(one for text in texts for one in _written(path, text, shell))
    return found


def _usual(name: str) -> tuple[str, str]:
    """Return a file's name and ending in small letters, without what marks it as an example to copy."""
    name = _EXAMPLE.sub("", name)
    return name, Path(name).suffix


def _blocks_of(path: Path) -> list[blocks.Block]:
    """Return the code blocks of a page that can be read. Raises RM311 where it has none."""
    known = (*_SHELLS, *_IMAGES, *_YAML_BLOCKS)
    text = read_text(path)
    if path.suffix.lower() == ".rst":
        rows = page_blocks.of_rst(text)
    else:
        rows = chain(blocks.fenced(text), page_blocks.indented(text))
    found = [one for one in islice(rows, _MOST) if one.language in known]
    if not found:
        advice = "Name the language of its blocks (```bash), or give the file that it describes."
        what = "the page has no code block of a known language"
        raise RocmatrixError("RM311", what=what, where=str(path), next=advice)
    return found


def _of_block(path: Path, block: blocks.Block, shell: Mapping[str, str]) -> tuple[Subject, ...]:
    """Return what one block sets, installs and starts, apart from the others: a page often shows one way after another.

    A block of YAML that is no whole file is left out, and so is what only whole scripts can be judged by.
    """
    with dockerfile.with_text(path, block.text):
        if block.language in _SHELLS:
            return _as_parts(scripts.of_file(path))
        try:
            return dockerfile.of_dockerfile(path) if block.language in _IMAGES else _of_yaml(path, shell, None)
        except RocmatrixError:
            return ()


def _as_parts(found: tuple[Subject, ...]) -> tuple[Subject, ...]:
    """Return subjects without what only whole scripts can be judged by: the rest sets names, too."""
    return tuple(
        replace(one, notes=tuple(note for note in one.notes if note.rule not in _OF_WHOLE_SCRIPTS)) for one in found
    )


def _of_notebook(path: Path) -> tuple[Subject, ...]:
    with dockerfile.with_text(path, page_blocks.of_notebook(read_text(path))):
        return scripts.of_file(path)


def _of_recipes(path: Path) -> tuple[Subject, ...]:
    with dockerfile.with_text(path, blocks.recipes(read_text(path))):
        return _as_parts(scripts.of_file(path))


def _written(path: Path, text: heredocs.Heredoc, shell: Mapping[str, str]) -> tuple[Subject, ...]:
    """Return what a script writes to a file of another kind; what cannot be read as such is left out."""
    name = text.name.lower()
    ending = Path(name).suffix
    read = _reader(name, ending) if name else None
    constraints = "constraint" in name and ending in _LISTS  # which install nothing by themselves
    if text.shell or constraints or (read is scripts.of_file and ending not in _LISTS):
        return ()
    with dockerfile.with_text(path, text.text):
        try:
            if read is not None:
                return scripts.of_requirements(path) if ending in _LISTS else read(path)
            return _of_yaml(path, shell, None) if ending in _YAML or not name else ()
        except RocmatrixError:
            return ()


def _reader(name: str, ending: str) -> _Reader | None:
    """Return the reader of a file by its name and ending, in small letters; of YAML the keys decide."""
    if name.startswith(("dockerfile", "containerfile")) or ending in (".dockerfile", ".containerfile"):
        return dockerfile.of_dockerfile
    if name in _RECIPES or ending == ".mk":
        return _of_recipes
    read = None if ending in _YAML else _unit_reader(name) or _reader_of_ending(ending)
    return (
        dockerfile.of_dockerfile
        if read is None and re.search(r"docker-?file", name) and ending not in (*_YAML, *_PROGRAMS)
        else read
    )


def _reader_of_ending(ending: str) -> _Reader | None:
    if ending in _SCRIPTS:
        return scripts.of_file
    return {
        ".toml": _of_toml, ".def": definition.of_definition, ".ipynb": _of_notebook, ".nix": nixos.of_nix,
        ".json": _of_json, **dict.fromkeys((".bat", ".cmd", ".ps1"), windows.of_windows),
    }.get(ending)  # fmt: skip


def _reader_of_text(text: str) -> _Reader | None:
    """Return the reader of a file whose name states nothing, by its first lines."""
    if text.startswith("#!"):
        return scripts.of_file
    rows = (row.strip() for row in text.splitlines())
    first = next((row for row in rows if row and not row.startswith("#")), "")
    if _DOCKERFILE.match(first):
        return dockerfile.of_dockerfile
    return definition.of_definition if _DEFINITION.match(first) else None


def _unit_reader(name: str) -> _Reader | None:
    """Return the reader of a file that starts one thing, by its name in small letters."""
    if name.endswith(_UNITS):
        return units.of_unit
    if name == ".envrc":
        return scripts.of_file  # direnv's, which is a script
    if name.endswith(".env") or name.startswith(".env"):
        return units.of_env
    return units.of_devcontainer if "devcontainer" in name and name.endswith(".json") else None


def _of_json(path: Path) -> tuple[Subject, ...]:
    """Return the settings of a training that are in JSON, as DeepSpeed's are; JSON is YAML, too."""
    return _of_training(path, manifests.documents(path))


def _of_training(path: Path, roots: Sequence[yaml.Node]) -> tuple[Subject, ...]:
    """Return the first document that is a training's settings. Raises RM311 where no document is."""
    root = next((node for node in roots if training.is_training(set(manifests.items(node)))), None)
    if root is None:
        raise _unknown(path)
    return training.of_training(path, root)


def _of_toml(path: Path) -> tuple[Subject, ...]:
    return poetry.of_poetry(path) or pyproject.of_pyproject(path)


def _of_yaml(path: Path, shell: Mapping[str, str], matrix: Matrix | None) -> tuple[Subject, ...]:
    roots = manifests.documents(path)
    if any(tasks.is_ansible(root) for root in roots):
        return tasks.of_tasks(path)
    documents = [manifests.items(node) for node in roots]
    keys = {key for document in documents for key in document}
    if "services" in keys:
        return compose.of_compose(path, shell=shell, matrix=matrix)
    if keys & {"jobs", "runs"} and "apiVersion" not in keys:
        return (workflows.of_workflow if "jobs" in keys else workflows.of_action)(path)
    if {"apiVersion", "kind"} <= keys:
        return manifests.of_manifests(path)
    if "dependencies" in keys:
        return projects.of_conda(path)
    pipeline = bool(documents) and workflows.is_pipeline(path, documents[0])
    return workflows.of_pipeline(path) if pipeline else _of_training(path, roots)


def _unknown(path: Path) -> RocmatrixError:
    what = (
        "it is none of the forms known: Dockerfile, compose, script, requirements, pyproject, conda, manifest, "
        "workflow, pipeline of GitLab, env file, unit, devcontainer, definition file of Apptainer, page in Markdown or "
        "reStructuredText, notebook, Makefile, tasks of Ansible, module of NixOS, guest of Proxmox VE, "
        "script of Windows, settings of a training"
    )
    advice = "Give it the usual name or ending; render templates first (`helm template`, `kubectl kustomize`)."
    return RocmatrixError("RM311", what=what, where=str(path), next=advice)
