"""Our perceptron beside scikit-learn's own, on three of its data sets, each with ten seeds.

    python benchmarks/sklearn_sets.py

Both get the same training rows, scaled alike, the same widths, batch size, step size and number of passes, and neither
looks at the validation part or at the test part, on which they are compared. Ours runs as `python -m trainer train`
does. What differs is each one's own: the first weights, AdamW without decay against Adam with alpha 1e-4.

It is as good where its mean over the seeds is at most one standard deviation (the larger of the two) below
scikit-learn's. Raw results go to benchmarks/results/sklearn_sets.json.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import statistics
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
import torch  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: E402

from trainer.cli import main as trainer  # noqa: E402
from trainer.config.sections.table import TableConfig  # noqa: E402
from trainer.tasks.bars import prepare  # noqa: E402
from trainer.tasks.prepared import Task  # noqa: E402

SEEDS = range(10)
SETS: dict[str, dict[str, Any]] = {  # passes after which scikit-learn's own loss no longer falls much
    "digits": {"load": datasets.load_digits, "epochs": 60, "metric": "accuracy"},
    "breast_cancer": {"load": datasets.load_breast_cancer, "epochs": 60, "metric": "accuracy"},
    "diabetes": {"load": datasets.load_diabetes, "epochs": 100, "metric": "r2_vs_mean"},
}
WIDTH, BATCH, RATE = 100, 32, 0.001


def table(name: str, folder: Path) -> Path:
    """Write a set of scikit-learn's as the table that the trainer reads."""
    path = folder / f"{name}.csv"
    SETS[name]["load"](as_frame=True).frame.to_csv(path, index=False)
    return path


def ours(path: Path, epochs: int, seed: int, output: Path, metric: str) -> float:
    """Return the test figure of a run of the trainer."""
    run = f"{path.stem}-{seed}"
    flags = {"data": path, "target": "target", "epochs": epochs, "seed": seed, "output": output, "run": run}
    flags |= {"hidden-layers": WIDTH, "batch-size": BATCH, "learning-rate": RATE, "weight-decay": 0, "device": "cpu"}
    flags |= {"weights": "last", "checkpoint-every": 0}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert trainer(["train", *(f"--{name}={value}" for name, value in flags.items())]) == 0
    record = json.loads((output / run / "metadata.json").read_text())
    return float(record["metrics"]["test"][metric])


def theirs(task: Task, epochs: int, seed: int) -> float:
    """Return the test figure of scikit-learn's perceptron, trained on the same rows."""
    kind = MLPClassifier if task.labels else MLPRegressor
    model = kind(hidden_layer_sizes=(WIDTH,), batch_size=BATCH, learning_rate_init=RATE, max_iter=epochs)
    model.set_params(random_state=seed, tol=0, n_iter_no_change=epochs)
    train, test = task.split.train, task.split.test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the passes are limited on purpose, for both alike
        model.fit(task.inputs.scale(train.features), task.targets.scale(train.target))
    answer = model.predict(task.inputs.scale(test.features))
    if task.labels:
        return float((answer == test.target).mean())
    errors = np.mean((task.targets.unscale(answer) - test.target) ** 2)
    return float(1 - errors / np.mean((train.target.mean() - test.target) ** 2))


def compared(name: str, seeds: Sequence[int], folder: Path) -> dict[str, Any]:
    """Return both test figures by seed on a set, their means and deviations, and whether ours is as good."""
    settings = SETS[name]
    path = table(name, folder)
    task = prepare(TableConfig(data=path, target="target"))
    found = {
        "ours": [ours(path, settings["epochs"], seed, folder / "runs", settings["metric"]) for seed in seeds],
        "scikit_learn": [theirs(task, settings["epochs"], seed) for seed in seeds],
    }
    means = {who: statistics.mean(values) for who, values in found.items()}
    deviations = {who: statistics.stdev(values) for who, values in found.items()}
    return {
        "metric": settings["metric"],
        "rows": {part: len(getattr(task.split, part)) for part in ("train", "validation", "test")},
        "epochs": settings["epochs"],
        "seeds": list(seeds),
        **found,
        "mean": means,
        "standard_deviation": deviations,
        "as_good": means["ours"] >= means["scikit_learn"] - max(deviations.values()),
    }


def main() -> None:
    """Compare on all sets and keep the results."""
    with tempfile.TemporaryDirectory() as folder:
        results = {name: compared(name, SEEDS, Path(folder)) for name in SETS}
    versions = {"torch": torch.__version__, "scikit-learn": sklearn.__version__, "python": platform.python_version()}
    setting = {"hidden": [WIDTH], "batch_size": BATCH, "learning_rate": RATE}
    content = {"versions": versions, "settings": setting, "sets": results}
    (ROOT / "benchmarks/results/sklearn_sets.json").write_text(json.dumps(content, indent=2) + "\n")
    for name, each in results.items():
        shown = ", ".join(
            f"{who} {each['mean'][who]:.4f} ± {each['standard_deviation'][who]:.4f}" for who in each["mean"]
        )
        print(f"{name}: {each['metric']} {shown}: {'as good' if each['as_good'] else 'worse'}")


if __name__ == "__main__":
    main()
