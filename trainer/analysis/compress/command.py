"""`python -m trainer compress`: one model folder to several smaller ones, with figures before and after."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch

from trainer.analysis.compress.measure import measured
from trainer.analysis.compress.methods import METHODS, Recipe, Smaller, dense
from trainer.analysis.compress.subject import Given, Subject, read_subject
from trainer.analysis.predict import WEIGHTS
from trainer.device.accelerator import make_reproducible
from trainer.run.artifacts import write_metadata
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.events import emit, say
from trainer.storage.run_folder import open_run
from trainer.tasks.export import pickled


def compress(  # one parameter an option
    model: Path,
    given: Given | None = None,
    output: Path | None = None,
    how: Sequence[str] = (),
    student_layers: tuple[int, ...] | None = None,
    sparsity: float = 0.8,
    epochs: int | None = None,
    seed: int = 0,
) -> int:
    """Write a folder `<run>-<method>` for each method next to the model's own, or in `output`.

    Args:
        model: folder of a finished run.
        given: where the run's files are now; None for where they were.
        output: folder that receives one folder a method; None for the one that holds `model`.
        how: names of METHODS; empty for all.
        student_layers: widths of the distilled network's hidden layers; None for half of each of the run's.
        sparsity: share of weights that pruning removes, 0 to 1.
        epochs: epochs of training after each change; None for the run's own number.
        seed: seed of this training.

    Raises:
        TrainerError: RM524 to RM547 for model and data, RM500 for an unknown method and for columns or a second file
            that the run did not have, RM540 where a folder exists.
        OSError: where a folder cannot be written.
    """
    unknown = [name for name in how if name not in METHODS]
    if unknown:
        raise TrainerError("RM500", what=f"no method {unknown[0]!r}; {suggestion(unknown[0], METHODS)}")
    subject = read_subject(model, given or Given())
    make_reproducible(seed=seed, threads=subject.config.compute.threads)
    recipe = Recipe(
        student_layers=halved(subject.model.hidden_layers) if student_layers is None else student_layers,
        sparsity=sparsity,
        epochs=epochs or subject.config.loop.epochs,
        learning_rate=subject.config.optimizer.learning_rate,
        teacher_share=0.5,
        seed=seed,
    )
    size = len(safetensors.torch.save(dense(subject.network), metadata={"format": "pt"}))
    before = measured(subject.network, subject.task, file_bytes=size)
    for name in how or tuple(METHODS):
        smaller = METHODS[name](subject, recipe)
        write(subject, smaller, name, recipe, before, output or model.resolve().parent)
    return 0


def halved(widths: Sequence[int]) -> tuple[int, ...]:
    """Return half of each width, at least 1."""
    return tuple(max(1, width // 2) for width in widths)


def write(
    subject: Subject, smaller: Smaller, method: str, recipe: Recipe, before: dict[str, Any], output: Path
) -> None:
    """Measure a smaller network, and write it as a folder that `predict` takes.

    Args:
        method: a key of METHODS: distill, prune or int8.
        before: figures of the run's own network, as `measured` returns them.
        output: folder to write.
    """
    content = safetensors.torch.save(smaller.tensors, metadata={"format": "pt"})
    after = measured(smaller.network, subject.task, file_bytes=len(content))
    facts = dict(smaller.facts)
    if "without_teacher" in facts:
        facts["without_teacher"] = measured(facts["without_teacher"], subject.task, file_bytes=len(content))
    name = f"{subject.metadata.run}-{method}"
    with open_run(output, name, need_bytes=4 * len(content) + 64 * 1024) as folder:
        files = {WEIGHTS: content}
        if smaller.description["storage"] == "dense":
            files["model.pt"] = pickled(smaller.tensors)
        compression = {"of": subject.metadata.run, "method": method, "recipe": asdict(recipe), **facts}
        compression |= {"before": before, "after": after, "measured_on": "this machine's CPU"}
        record = metadata_of(subject, smaller, name, compression)
        record["artifacts"] = {file: folder.write(file, bytes_) for file, bytes_ in files.items()}
        write_metadata(folder, record)
    written = record["metrics"]["compression"]  # null where a figure is not finite, as JSON lines need it, too
    emit("compressed", method=method, folder=str(output / name), before=written["before"], after=written["after"])
    say(message(method, before, after, output / name))


def metadata_of(subject: Subject, smaller: Smaller, name: str, compression: dict[str, Any]) -> dict[str, Any]:
    """Return the run's metadata with the smaller network and its figures in place of the run's own.

    Args:
        name: name of the new run.
        compression: entry `compression` of the metadata.
    """
    record = copy.deepcopy(asdict(subject.metadata)) | {"run": name, "model": smaller.description}
    # why a figure of the run's own is null says nothing of these, which are measured anew
    record["absent"] = {fact: why for fact, why in record["absent"].items() if not fact.startswith("metrics.")}
    after = compression["after"]
    record["metrics"] = {"validation": after["validation"], "test": after["test"], "compression": compression}
    return record


def message(method: str, before: dict[str, Any], after: dict[str, Any], folder: Path) -> str:
    """Return a line: loss on the test part, bytes and time before and after.

    Args:
        method: a key of METHODS: distill, prune or int8.
        before: figures of the run's own network, as `measured` returns them.
        after: figures of the smaller network.
        folder: folder that was written.
    """
    times = [each["microseconds"] for each in (before, after)]
    shown = ", ".join(f"{name} {times[0][name]:,.0f} to {times[1][name]:,.0f} µs" for name in times[0])
    return (
        f"{method:<7} test loss {before['test']['loss']:.4f} to {after['test']['loss']:.4f}, weights' file "
        f"{before['file_bytes']:,} to {after['file_bytes']:,} bytes, on this CPU {shown}: {folder}"
    )
