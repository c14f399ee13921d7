"""`python -m trainer report RUN`: the page of a finished run, from its folder and its data."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer.analysis.compress.measure import tensor
from trainer.analysis.compress.subject import Given, Subject, files_of, read_subject
from trainer.analysis.report import run_charts
from trainer.analysis.report.figures import figure_rows, span_of, words_of
from trainer.analysis.report.importance import importances
from trainer.analysis.report.page import facts, folded, page, table
from trainer.analysis.report.session import last_profile
from trainer.data.dataset import Dataset
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, loss_sum_of
from trainer.runtime.events import emit, say
from trainer.runtime.short_names import shortened_apart
from trainer.storage.output_file import require_output, write_whole
from trainer.storage.untrusted_files import read_from
from trainer.tasks.metrics.classification import probabilities
from trainer.tasks.metrics.comparison import name_of, verdict
from trainer.tasks.metrics.score import as_numbers

SYNTHETIC = "synthetic"  # how the source of made-up data begins, in SOURCE.md and in the metadata
Sections = list[tuple[str, str]]
MOST_CLASSES, MOST_LETTERS = 20, 24  # of the table of answers: classes, and letters of a name
NO = "-"  # in a cell that has nothing to hold


def report(
    run: Path,
    given: Given | None = None,
    output: Path | None = None,
    repeats: int = 5,
    seed: int = 0,
) -> int:
    """Write the page of the run in folder `run`, by default next to its model.

    Args:
        run: folder of a finished run.
        given: where the run's files are now; None for where they were.
        output: HTML file to write; None for report.html in `run`.
        repeats: shuffles of each input for its importance.
        seed: seeds the shuffles of columns; the same seed repeats the figures.

    Raises:
        TrainerError: RM524, RM546, RM547 for the folder and its data, RM500 for an `output` that is one of their files
            and for columns or a second file that the run did not have.
        OSError: where the page cannot be written.
    """
    subject = read_subject(run, given or Given())
    place = output or run / "report.html"
    own = {f"the run's {name}": run / name for name in ("metadata.json", *subject.metadata.artifacts)}
    require_output(place, "--output", files_of(subject.config) | own)
    with read_from(run, "metadata.json or metrics.jsonl"):
        text = html(subject, repeats, seed)
    write_whole(place, text.encode(errors="backslashreplace"))
    emit("report", run=subject.metadata.run, file=str(place))
    say(f"report  {place}")
    return 0


def html(subject: Subject, repeats: int, seed: int) -> str:
    """Return the page.

    Args:
        repeats: shuffles of each input for its importance.
        seed: seeds the shuffles of columns; the same seed repeats the figures.
    """
    record = subject.metadata
    device = f"{record.device.name} ({record.device.arch})"
    lead = (
        f"{record.target.name} from {record.data.name}, {record.data.rows_used:,} rows; {record.model.kind} of widths "
        f"{', '.join(map(str, record.model.widths))}; trained {minute_of(record.created)} on {device}."
        f"{origin(record.data.source)}"
    )
    sections: Sections = [
        ("Figures", scores(subject)),
        *simpler(subject),
        ("Training", training(subject)),
        ("Predictions and errors", answers(subject)),
        ("Importance of inputs", importance(subject, repeats, seed)),
        *session(subject),
        ("Data and split", run_charts.split(_split(record))),
        ("Conventions", conventions(record.feature_set)),
        ("Settings", folded("Every setting as resolved", facts(record.config))),
    ]
    made_up = (record.data.source or "").startswith(SYNTHETIC)
    return page(f"Run {record.run}{' on synthetic data' if made_up else ''}", lead, sections)


def minute_of(created: str) -> str:
    """Return a record's time as a person reads it; a page breaks no line within it."""
    day, _, time = created.partition("T")
    return f"{day}\u00a0{time[:5]}\u00a0UTC" if time.endswith("+00:00") else created


def origin(source: str | None) -> str:
    """Return the sentence on where the data came from; synthetic data are named so before anything else."""
    if source is None:
        return " No source is recorded for the data."
    return f" SYNTHETIC data, no market's: {source}." if source.startswith(SYNTHETIC) else f" Source: {source}."


def _split(record: Any) -> dict[str, Any]:
    return {name: vars(value) if hasattr(value, "rows") else value for name, value in vars(record.split).items()}


def scores(subject: Subject) -> str:
    """Return the recorded figures of validation and test, and what the baselines are."""
    metrics = subject.metadata.metrics
    rows = figure_rows(metrics["validation"], metrics["test"])
    against = "; ".join(f"{name}: {words}" for name, words in subject.metadata.baselines.items())
    return table(("figure", "validation", "test"), rows) + f'<p class="dim">Compared with {against}.</p>'


def simpler(subject: Subject) -> Sections:
    """Return the section on simpler models on the same rows; none for a run without them, as earlier trainers made."""
    metrics, classes = subject.metadata.metrics, bool(subject.metadata.target.classes)
    found = metrics.get("baselines", {})
    headline = "accuracy" if classes else "r2_vs_mean"
    ours = metrics["test"]
    rows: list[tuple[Any, ...]] = [("the network", ours.get(headline), span_of(ours, headline), NO)]
    for model, each in found.items():
        own = each.get("test", {})
        cells = (each["absent"], "", NO) if "absent" in each else (own[headline], span_of(own, headline), verdict(own))
        rows.append((name_of(model, each, classes=classes), *cells))
    columns = ["model", words_of(headline), "95 % interval", "difference"]
    if not any(row[2] for row in rows):  # bars that follow each other are not independent, so they have none
        rows, columns = [(*row[:2], row[3]) for row in rows], [*columns[:2], columns[3]]
    how = "; ".join(
        f"{name_of(m, e, classes=classes)}: {e['how']} ({e['rows']:,} rows)" for m, e in found.items() if "how" in e
    )
    content = table(columns, rows) + f'<p class="dim">On the test part; {escape(how)}.</p>'
    return [("Was a network worth it?", content)] if found else []


def training(subject: Subject) -> str:
    """Return the loss curves; a model that was made smaller has no epochs of its own in its folder."""
    log = subject.folder / "metrics.jsonl"
    if not log.is_file():  # a pipe is none either
        return "<p>This folder holds no log of epochs: the model was made from another run's.</p>"
    epochs = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    kept = "the last" if subject.config.loop.weights == "last" else "the best validation loss"
    return run_charts.losses(epochs, subject.metadata.model.loss) + f'<p class="dim">Weights kept: {kept}.</p>'


def answers(subject: Subject) -> str:
    """Return calibration and confusion for classes, forecasts and errors for a number, on validation and test."""
    task = subject.task
    parts = {"validation": task.split.validation, "test": task.split.test}
    return "".join(_answers(subject, name, part) for name, part in parts.items())


def _answers(subject: Subject, name: str, part: Dataset) -> str:
    task, unit = subject.task, subject.metadata.target.unit
    with torch.no_grad():
        outputs = as_numbers(subject.network(tensor(task.inputs, part.features)))
    if task.labels is None:
        forecast = task.targets.unscale(outputs[:, 0])
        charts = (run_charts.scatter, run_charts.errors)
        return "".join(chart(part.target, forecast, unit, name) for chart in charts)
    chances = probabilities(outputs)
    return run_charts.reliability(part.target, chances, name) + confusion(task.labels, part, chances, name)


def confusion(labels: tuple[str, ...], part: Dataset, chances: Any, name: str) -> str:
    """Return how often each class was answered for each true one: of MOST_CLASSES, those with most wrong answers.

    Args:
        labels: names of the classes.
        chances: probabilities, shape (rows, classes).
        name: name of the part, for the caption.
    """
    counts = np.zeros((len(labels), len(labels)), np.int64)
    np.add.at(counts, (part.target.astype(np.int64), chances.argmax(axis=1)), 1)
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    chosen = np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])
    names = shortened_apart([labels[place] for place in chosen], MOST_LETTERS)
    rows = [(f"is {label}", *counts[place, chosen].tolist()) for place, label in zip(chosen, names, strict=True)]
    head = ("class", *(f"answered {label}" for label in names))
    left_out = len(labels) - len(chosen)
    rest = f'<p class="dim">The {left_out:,} classes with fewest wrong answers are left out.</p>' if left_out else ""
    return folded(f"Answers by class on the {name} part", table(head, rows) + rest)


def importance(subject: Subject, repeats: int, seed: int) -> str:
    """Return the importance of each input by permutation on the validation part, as a chart and as a table.

    Args:
        repeats: shuffles of each input.
        seed: seeds the shuffles of columns; the same seed repeats the figures.
    """
    task, part = subject.task, subject.task.split.validation
    loss = subject.metadata.model.loss
    found = importances(
        subject.network,
        tensor(task.inputs, part.features),
        tensor(task.targets, part.target).unsqueeze(1),
        [feature["name"] for feature in task.features],
        loss=loss_sum_of(CROSS_ENTROPY if task.labels else SQUARED_ERROR),
        repeats=repeats,
        seed=seed,
    )
    rows = [(each.name, each.mean, each.deviation) for each in found]
    numbers = folded("All inputs as numbers", table(("input", "growth of the loss", "standard deviation"), rows))
    return run_charts.importance(found, loss, repeats, seed) + numbers


def session(subject: Subject) -> Sections:
    """Return the section on the volume profile of the data's last session; none for a table and for bars of days."""
    if subject.metadata.feature_set["set"] != "intraday":
        return []
    found = last_profile(subject.metadata, subject.config.data.data)
    return [("A session's volume", run_charts.profile(found) if found else "<p>Not drawn: no bar is within one.</p>")]


def conventions(made: dict[str, Any]) -> str:
    """Return how features were made: conventions of profiles and sessions, or the columns of a table."""
    rest = {name: value for name, value in made.items() if name not in ("columns", "key")}
    if "missing" in rest:
        words = ["an empty cell", *filter(None, rest["missing"]["words"])]
        rest["missing"] = {**rest["missing"], "words": words}
    columns = [
        (each["name"], each["kind"], each["why"], len(each["categories"]) or "none", each["fill"])
        for each in made.get("columns", [])
    ]
    head = ("column", "kind", "why", "categories", "fills missing")
    if not columns:
        return facts(rest)
    return facts(rest) + folded(f"All {len(columns)} columns", table(head, columns))
