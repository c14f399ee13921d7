"""Forecast with a finished run's model: the same features, scaled as in training, for every bar that has them."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import nn

from trainer.analysis.bar_inputs import NewBars, needs_vix, open_bars, recorded_features, require_vix
from trainer.analysis.likeness import report_far
from trainer.analysis.table_inputs import recorded_inputs
from trainer.data.bar import Bars, Floats
from trainer.data.features.daily_features import FEATURES
from trainer.data.features.history_features import SESSIONS
from trainer.data.readers.data_file import all_bars
from trainer.data.split import FURTHEST
from trainer.models.build import size
from trainer.models.storage import unpacked
from trainer.runtime.errors import TrainerError, suggestion
from trainer.runtime.events import emit, say
from trainer.storage.output_file import require_output, write_whole
from trainer.storage.untrusted_files import json_of, read_from
from trainer.tasks.metrics.classification import probabilities
from trainer.tasks.records.row_checks import require_sound
from trainer.tasks.records.row_schema import FeatureRecord, Metadata, read

WEIGHTS = "model.safetensors"


def predict(
    model: Path, data: Path, output: Path | None = None, join: Path | None = None, columns: tuple[str, ...] = ()
) -> None:
    """Forecast for each bar or row of `data` whose features are known, into the CSV file `output` or as JSON lines.

    Args:
        model: folder of a finished run.
        data: bars, or a table with the columns of the run's.
        output: CSV file to write; None prints JSON lines.
        join: file with the VIX, joined as the run's was; None where `data` has it or the model needs none.
        columns: columns of `data` by role, as date=NAME; empty for those that the run was given, or found ones.

    Raises:
        TrainerError: RM546 to RM548 for the model, RM510 to RM517 and RM580 to RM584 for the data, RM500 for an
            `output` that is one of their files, a folder, or below none.
        OSError: where `output` cannot be written.
    """
    metadata = read_metadata(model)
    if output is not None:
        second = {"--join": join} if join else {}
        own = {f"--model's {name}": model / name for name in (WEIGHTS, "metadata.json", *metadata.artifacts)}
        require_output(output, "--output", {"--data": data, **second, **own})
    network = load_network(model, metadata)
    require_bars(metadata, join, columns)
    names, features = inputs_of(metadata, NewBars(data=data, join=join, columns=columns), model)
    known = usable(metadata, features)
    rows = {name: [value for value, use in zip(values, known, strict=True) if use] for name, values in names.items()}
    require_near(features[known], rows, metadata, data)
    report_far(features[known], metadata, [record.name for record in metadata.features])
    forecasts = forecast(network, metadata, features[known])
    require_finite(forecasts, rows, data)
    named = rows | forecasts
    if output is not None:
        write_whole(output, as_csv(named))
    else:
        for row in zip(*named.values(), strict=True):
            emit("forecast", **dict(zip(named, row, strict=True)))
    target, count = metadata.target, int(known.sum())
    emit("done", run=metadata.run, data=data.name, rows=count, output=str(output) if output else None)
    ahead = f", {target.horizon} bars ahead" if target.horizon else ""
    unit = f"{target.unit} unit" if target.unit == "the column's own" else target.unit
    say(f"{count:,} forecast{'' if count == 1 else 's'} of {target.name}{ahead}, in {unit}")


def require_bars(metadata: Metadata, join: Path | None, columns: tuple[str, ...]) -> None:
    """Raise RM500 where options of bars are given and the run is of a table; report where a join has no effect.

    Args:
        join: file with the VIX.
        columns: columns by role.
    """
    if metadata.feature_set["set"] == "table":
        if given := "--join" if join else "--columns" if columns else "":
            raise TrainerError("RM500", what=f"{given} is for bars, and {metadata.run} was trained on a table")
    elif join and not needs_vix(metadata):
        say("--join has no effect on the features: the model has none that is made of the VIX")


def inputs_of(metadata: Metadata, new: NewBars, folder: Path) -> tuple[dict[str, list[Any]], NDArray[Any]]:
    """Return what names each row of `data`, such as its date, and the model's inputs for it, (rows, features).

    `folder` is the model's. Raises RM546 where its metadata do not state how to make them.

    Args:
        new: bars, or a table with the columns of the run's.
        folder: folder of the run.
    """
    with read_from(folder / "metadata.json", "what it holds of the features"):
        names, features = _inputs_of(metadata, new)
        if features.dtype.kind != "f" or features.ndim != 2 or features.shape[1] != len(metadata.features):
            raise ValueError(f"it makes {features.dtype} {features.shape} of {len(metadata.features)} features")
    return names, features


def _inputs_of(metadata: Metadata, new: NewBars) -> tuple[dict[str, list[Any]], NDArray[Any]]:
    if metadata.feature_set["set"] == "table":
        return recorded_inputs(metadata.feature_set, new.data)
    if metadata.feature_set["set"] == "intraday":
        dates, features = recorded_features(metadata, new)
    else:
        source = open_bars(metadata, new)
        require_vix(source, metadata, new)
        bars = all_bars(source)
        dates, features = bars.date, np.stack([compute(record, bars) for record in metadata.features], axis=1)
    return {"date": [_day(date) for date in dates]}, features


def usable(metadata: Metadata, features: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows have all their features, (rows,).

    Raises:
        TrainerError: RM517 where none has.
    """
    known: NDArray[np.bool_] = np.isfinite(features).all(axis=1)
    if not known.any():
        bars = [record.lookback for record in metadata.features if record.lookback is not None]
        need = f"{max(bars)} bars" if bars else f"{SESSIONS} sessions and 120 bars"
        what = f"{len(known)} bars, but a forecast needs {need} before the bar it is made at"
        table = metadata.feature_set["set"] == "table"
        raise TrainerError("RM517", what="every row misses a value" if table else what)
    return known


def read_metadata(folder: Path) -> Metadata:
    """Read metadata.json of a run's folder.

    Raises:
        TrainerError: RM546 where there is none that this trainer reads, RM719 for a language model's.
    """
    path = folder / "metadata.json"
    try:
        content = json_of(path)
        refuse_language(content, folder)
        metadata = read(content)
        require_sound(metadata)
    except (FileNotFoundError, NotADirectoryError):
        raise TrainerError("RM546", what="there is no metadata.json", where=str(folder), next=_run_in(folder)) from None
    except (ValueError, UnicodeDecodeError, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        why = str(error)[:200]
        raise TrainerError("RM546", what="metadata.json cannot be used", where=str(path), why=why) from error
    return metadata


def _run_in(folder: Path) -> str:
    """Return the newest finished run within a folder of runs, as advice; "" where there is none."""
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        return ""
    runs = sorted(each.parent.name for each in folder.glob("*/metadata.json"))
    return f"Runs are folders within this one: give {folder / runs[-1]}, the newest finished one." if runs else ""


def refuse_language(content: Any, folder: Path) -> None:
    """Raise RM719 where metadata.json is of a language model."""
    if isinstance(content, dict) and content.get("task") == "language":
        raise TrainerError("RM719", what=f"the run {content.get('run')} is a language model", where=str(folder))


def load_network(folder: Path, metadata: Metadata) -> nn.Module:
    """Return the trained network on the CPU, its file's bytes checked against metadata.json.

    Raises:
        TrainerError: RM546 for an unknown kind of network, RM547 where the file is missing or damaged.
    """
    path = folder / WEIGHTS
    content = path.read_bytes() if path.is_file() else b""  # a pipe is no file, and not waited for
    recorded = metadata.artifacts.get(WEIGHTS)
    if recorded is None or hashlib.sha256(content).hexdigest() != recorded.sha256:
        expected = f"{recorded.bytes:,} bytes with SHA-256 {recorded.sha256}" if recorded else "no such file"
        why = f"metadata.json records {expected}"
        raise TrainerError("RM547", what=f"the file has {len(content):,} bytes of its own", where=str(path), why=why)
    try:
        require_size(vars(metadata.model), len(content))
        network = unpacked(vars(metadata.model), safetensors.torch.load(content))
    except (ValueError, RuntimeError, LookupError, TypeError, AttributeError, SafetensorError) as error:
        what = "the weights do not fit the network described"
        raise TrainerError("RM546", what=what, where=str(folder), why=str(error)[:200]) from error
    values = (*network.parameters(), *network.buffers())
    if not all(bool(torch.isfinite(value).all()) for value in values if value.is_floating_point()):
        raise TrainerError("RM546", what="a weight is no finite number", where=str(path))
    return network.eval()


def require_size(description: Mapping[str, Any], stored: int) -> None:
    """Raise ValueError where a network has more weights than `stored` bytes can hold, before any is allocated."""
    weights = size(description)
    if weights > 8 * stored:  # a bit each, for one that is 0, is the least
        raise ValueError(f"{weights:,} weights cannot lie in {stored:,} bytes")


@torch.no_grad()
def forecast(network: nn.Module, metadata: Metadata, features: NDArray[Any]) -> dict[str, list[Any]]:
    """Return forecasts for features (rows, features) by column: the target's value in its unit.

    For classes it is the likeliest one's name, followed by each one's probability.

    Args:
        network: network in eval mode.
        features: inputs before scaling, shape (rows, features).
    """
    scaled = (features - np.array(metadata.scaler.mean, dtype=np.float64)) / np.array(
        metadata.scaler.std, dtype=np.float64
    )
    outputs = network(torch.tensor(scaled, dtype=torch.float32)).double().numpy()  # (rows, outputs)
    target = metadata.target
    if target.labels is None:
        return {target.name: (outputs[:, 0] * target.std + target.mean).tolist()}
    chances = probabilities(outputs)
    answers = [target.labels[place] for place in chances.argmax(axis=1)]
    each = {f"p({label})": chances[:, place].tolist() for place, label in enumerate(target.labels)}
    return {target.name: answers, **each}


def require_finite(forecasts: Mapping[str, Sequence[Any]], rows: Mapping[str, Sequence[Any]], data: Path) -> None:
    """Raise RM595 for the first row whose forecast is no finite number.

    Args:
        forecasts: forecasts by column, each of length rows.
        rows: what names each row, by column, each of length rows.
        data: path of the data, for the message.
    """
    for values in forecasts.values():
        for place, value in enumerate(values):
            if isinstance(value, float) and not math.isfinite(value):
                unit, names = next(iter(rows.items()))
                raise TrainerError("RM595", what=f"the forecast is {value}", where=f"{data}, {unit} {names[place]}")


def require_near(features: NDArray[Any], rows: Mapping[str, Sequence[Any]], metadata: Metadata, data: Path) -> None:
    """Raise RM580 for the first row of features (rows, features) with a value that 32 bits cannot compute with.

    Args:
        features: inputs before scaling, shape (rows, features).
        rows: what names each row, by column, each of length rows.
        data: path of the data, for the message.
    """
    away = np.abs(features - np.array(metadata.scaler.mean, dtype=np.float64)) / np.array(
        metadata.scaler.std, dtype=np.float64
    )
    bad = np.argwhere(away > FURTHEST)
    if len(bad):
        row, place = (int(each) for each in bad[0])
        unit, names = next(iter(rows.items()))
        far = f"{away[row, place]:.0e} standard deviations from the training rows' mean"
        what = f"{features[row, place]:g} in {metadata.features[place].name!r} is {far}, too far for 32 bits"
        raise TrainerError("RM580", what=what, where=f"{data}, {unit} {names[row]}")


def compute(record: FeatureRecord, bars: Bars) -> Floats:
    """Return one feature as it was computed in training, shape (bars,).

    Raises:
        TrainerError: RM548 where this trainer does not know it, or has another formula for it.
    """
    known = {feature.name: feature for feature in FEATURES}
    feature = known.get(record.name)
    if feature is None:
        raise TrainerError("RM548", what=f"no feature {record.name!r} here", why=suggestion(record.name, known))
    if feature.formula != record.formula:
        why = f"the model was trained on {record.formula}; here it is {feature.formula}"
        raise TrainerError("RM548", what=f"the feature {record.name!r} has another formula", why=why)
    return feature.compute(bars)


def as_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a header and a line for each row, numbers with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([repr(value) if isinstance(value, float) else value for value in row])
    return text.getvalue().encode()


def _day(date: np.datetime64) -> str:
    return str(date).removesuffix("T00:00:00")
