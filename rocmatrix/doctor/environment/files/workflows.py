"""Workflows of GitHub and pipelines of GitLab as subjects: what their jobs set, run and start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from rocmatrix.doctor.environment.dockerfile import installed, substituted
from rocmatrix.doctor.environment.files.manifests import documents, items, line_of, members, text, variables_of
from rocmatrix.doctor.environment.launch import Launch, of_command
from rocmatrix.doctor.environment.lint_input import Assignment, Command, FileFinding, Subject
from rocmatrix.doctor.environment.scripts import launches
from rocmatrix.doctor.environment.shell.words import lines

_AMD_LABEL = re.compile(r"rocm|amd(?!64)|gfx\d|\bmi\d{3}", re.IGNORECASE)
# of a pipeline: what counts for all jobs, and the other keys that are no job
_SHARED = ("image", "before_script", "after_script")
_NO_JOBS = (*_SHARED, "variables", "default", "stages", "include", "workflow", "cache", "services", "spec")
_DEEPEST = 10  # levels of lists in scripts
_OTHER_SHELL = re.compile(r"python|pwsh|powershell|cmd|node|perl")  # what is run there is no script of a POSIX shell
_HOSTED = re.compile(r"^(?:ubuntu|windows|macos)-[\w.-]+$")


def of_workflow(path: Path) -> tuple[Subject, ...]:
    """Return the jobs of a GitHub workflow, and the containers that their steps start. Raises RM310, RM311."""
    root = items(next(iter(documents(path)), None))
    shared = tuple(variables_of(path, root.get("env")))
    return tuple(
        subject
        for name, node in items(root.get("jobs")).items()
        if isinstance(node, yaml.MappingNode)
        for subject in _of_job(path, name, items(node), shared)
    )


def of_action(path: Path) -> tuple[Subject, ...]:
    """Return the steps of a composite action of GitHub as one job. Raises RM310, RM311."""
    runs = items(next(iter(documents(path)), None)).get("runs")
    return tuple(_of_job(path, "action", items(runs), ())) if isinstance(runs, yaml.MappingNode) else ()


def _of_job(path: Path, name: str, job: Mapping[str, yaml.Node], shared: tuple[Assignment, ...]) -> Iterator[Subject]:
    steps = [items(row) for row in members(job.get("steps")) if not _OTHER_SHELL.match(text(items(row).get("shell")))]
    commands = tuple(
        Command(text=line.text, where=f"{path}:{_first(step['run']) + line.number}", rows=line.rows)
        for step in steps
        if "run" in step
        for line in lines(text(step["run"]))
    )
    variables = (
        *shared,
        *variables_of(path, job.get("env")),
        *(v for s in steps for v in variables_of(path, s.get("env"))),
    )
    held = job.get("container")
    container = items(held) if isinstance(held, yaml.MappingNode) else {"image": held} if held is not None else {}
    image = text(container.get("image")) or None
    place = container["image"] if image else next(iter(job.values()), None)
    where = line_of(path, place) if place else f"{path}:1"
    runner = " ".join(text(row) for row in members(job.get("runs-on"))) or text(job.get("runs-on"))
    launch = _job_launch(container, image, where)
    yield Subject(
        name=f"{path} job {name}", variables=tuple(variables), commands=commands, image=image, where=where,
        pairs=tuple(pair for command in commands for pair in installed(command.text, command.where)),
        launch=launch, for_amd=bool(_AMD_LABEL.search(runner)),
        notes=tuple(_runner_notes(where, runner, commands, launch)),
    )  # fmt: skip
    for command in commands:
        yield from launches(command, str(path))


def _job_launch(container: Mapping[str, yaml.Node], image: str | None, where: str) -> Launch | None:
    options = text(container.get("options"))
    if image is None or not options:
        return None
    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    return of_command(["docker", "run", *words, image], where)


def _runner_notes(
    where: str, runner: str, commands: tuple[Command, ...], launch: Launch | None
) -> Iterator[FileFinding]:
    wants = launch is not None and any("kfd" in device for device in launch.devices)
    wants = wants or any("/dev/kfd" in command.text and "run" in command.text for command in commands)
    if wants and _HOSTED.match(runner):
        yield FileFinding(
            rule="hosted-runner-has-no-card", where=where, what=f"runs-on {runner} with /dev/kfd", severity="error",
            truth="GitHub's own runners have no AMD card, so /dev/kfd is missing and the container does not start",
            instead="a self-hosted runner with a card, or a job without devices",
        )  # fmt: skip


def of_pipeline(path: Path) -> tuple[Subject, ...]:
    """Return the jobs of a pipeline of GitLab, its hidden ones among them. Raises RM310, RM311."""
    root = merged(next(iter(documents(path)), None))
    general = {**{key: root[key] for key in _SHARED if key in root}, **merged(root.get("default"))}
    jobs = {name: _held(root, name) for name, node in root.items() if name not in _NO_JOBS}
    return tuple(
        subject
        for name, held in jobs.items()
        if "script" in held
        for subject in _of_pipeline_job(path, name, {**general, **held}, root.get("variables"))
    )


def is_pipeline(path: Path, root: Mapping[str, yaml.Node]) -> bool:
    """Return whether a YAML file is a pipeline of GitLab, by its name or its jobs.

    Args:
        root: its entries by name.
    """
    if path.name.endswith(("gitlab-ci.yml", "gitlab-ci.yaml")):
        return True
    jobs = [merged(node).keys() for name, node in root.items() if name not in _NO_JOBS]
    return any("script" in keys and keys & {"stage", "image", "tags", "extends", "rules", "needs"} for keys in jobs)


def _held(root: Mapping[str, yaml.Node], name: str) -> dict[str, yaml.Node]:
    """Return the entries of a job with those of the jobs that it extends, as far as they are in the file."""
    layers: list[dict[str, yaml.Node]] = []
    left, seen = [name], set[str]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        layers.append(merged(root.get(one)))
        extended = layers[-1].get("extends")
        left += [text(row) for row in members(extended)] or ([text(extended)] if extended is not None else [])
    return {key: node for layer in reversed(layers) for key, node in layer.items()}


def merged(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return a mapping's entries by name, with those of the mappings that it merges (<<)."""
    own = items(node)
    below = own.pop("<<", None)
    held: dict[str, yaml.Node] = {}
    for other in reversed(members(below) or ([below] if below is not None else [])):
        held |= items(other)
    return held | own


def _of_pipeline_job(
    path: Path, name: str, job: Mapping[str, yaml.Node], shared: yaml.Node | None
) -> Iterator[Subject]:
    variables = tuple(row for node in (shared, job.get("variables")) for row in variables_of(path, node) if row.value)
    known = {row.name: row.value for row in variables}
    rows = [row for key in ("before_script", "script", "after_script") for row in _rows(job.get(key))]
    commands = tuple(
        Command(text=substituted(line.text, known), where=f"{path}:{_first(row) + line.number}", rows=line.rows)
        for row in rows
        for line in lines(text(row))
    )
    image = merged(job["image"]).get("name", job["image"]) if "image" in job else None
    tags = " ".join(text(row) for row in members(job.get("tags")))
    place = image if image is not None else next(iter(job.values()))
    yield Subject(
        name=f"{path} job {name}", variables=variables, commands=commands, where=line_of(path, place),
        image=substituted(text(image), known) or None, for_amd=bool(_AMD_LABEL.search(tags)),
        pairs=tuple(pair for command in commands for pair in installed(command.text, command.where)),
    )  # fmt: skip
    for command in commands:
        yield from launches(command, str(path))


def _rows(node: yaml.Node | None, depth: int = 0) -> Iterator[yaml.Node]:
    """Yield the lines of a script: one text, or a list of texts and of lists that an alias puts in."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    for row in members(node) if depth < _DEEPEST and getattr(node, "tag", "") != "!reference" else ():
        yield from _rows(row, depth + 1)


def _first(node: yaml.Node) -> int:
    """Return the line before the first of a block of text."""
    return int(node.start_mark.line + (1 if getattr(node, "style", None) in ("|", ">") else 0))
