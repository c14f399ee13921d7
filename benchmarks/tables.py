"""The defaults of `train` on tables beside scikit-learn's perceptron, LightGBM and linear models.

    python -m benchmarks.tables [--seeds 5]

Needs scikit-learn, statsmodels and lightgbm. Every set comes with scikit-learn (all of its own but the 20 rows of
linnerud) or with statsmodels, or is made (`made_…`, SYNTHETIC). A seed draws parts and weights. Ours is
`train --data --target --seed --split-seed` and nothing else; theirs are each package's
defaults, targets of numbers and the inputs of all but LightGBM standardised, trained on the rows of our training part.
Ours chooses its best epoch on the validation part; theirs look at no validation. Figures are those of the test part:
share of right answers, or R² against the training mean. Results: benchmarks/results/tables.json and docs/tables.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import platform
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import sklearn
import statsmodels
import torch
from sklearn import datasets, linear_model, neural_network
from statsmodels import datasets as surveys

from trainer.cli import main as trainer
from trainer.config.sections.table import TableConfig
from trainer.config.train import TrainConfig
from trainer.tasks.bars import prepare

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results/tables.json"
BEGIN, END = "<!-- begin figures -->", "<!-- end figures -->"


def of_statsmodels(name: str, target: str, *without: str) -> Callable[[], Any]:
    """Return what loads a set of statsmodels as inputs and target, `without` columns that are neither."""

    def load() -> Any:
        frame = getattr(surveys, name).load_pandas().data
        inputs = frame.drop(columns=[target, *without]).to_numpy(float)
        values = frame[target].to_numpy()
        return inputs, values.astype(int) if name in CLASSES else values

    return load


def passed_share() -> Any:
    """Return the set star98: the share of a district's pupils above the median, from what is known of the district."""
    frame = surveys.star98.load_pandas().data
    above, below = frame["NABOVE"].to_numpy(), frame["NBELOW"].to_numpy()
    return frame.drop(columns=["NABOVE", "NBELOW"]).to_numpy(float), above / (above + below)


CLASSES: dict[str, Callable[[], Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "anes96": of_statsmodels("anes96", "vote"),
    "modechoice": of_statsmodels("modechoice", "choice", "individual"),
    "made_classification": lambda: datasets.make_classification(
        2000, 20, n_informative=8, n_redundant=4, n_classes=3, random_state=0
    ),
    "made_moons": lambda: datasets.make_moons(1500, noise=0.25, random_state=0),
}
NUMBERS: dict[str, Callable[[], Any]] = {
    "diabetes": datasets.load_diabetes,
    "fair": of_statsmodels("fair", "affairs"),
    "randhie": of_statsmodels("randhie", "mdvis"),
    "star98": passed_share,
    "engel": of_statsmodels("engel", "foodexp"),
    "made_friedman1": lambda: datasets.make_friedman1(2000, noise=1.0, random_state=0),
    "made_regression": lambda: datasets.make_regression(1000, 20, n_informative=10, noise=20.0, random_state=0),
}


def table(made: Any, path: Path, *, classes: bool) -> None:
    """Write a set as the table that the trainer reads."""
    data, target = (made.data, made.target) if hasattr(made, "data") else made
    names = [f"x{place}" for place in range(data.shape[1])]
    rows = [",".join([*(repr(float(v)) for v in row), str(y)]) for row, y in zip(data, target.tolist(), strict=True)]
    path.write_text("\n".join([",".join([*names, "target"]), *rows]) + "\n")


def ours(path: Path, seed: int, output: Path, metric: str) -> float:
    """Return the test figure of a run with no setting but data, target and seed."""
    argv = [
        "train",
        f"--data={path}",
        "--target=target",
        f"--seed={seed}",
        f"--split-seed={seed}",
        f"--output={output}",
    ]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert trainer([*argv, f"--run={path.stem}-{seed}", "--device=cpu"]) == 0
    record = json.loads((output / f"{path.stem}-{seed}" / "metadata.json").read_text())
    return float(record["metrics"]["test"][metric])


def theirs(path: Path, seed: int, *, classes: bool) -> dict[str, float]:
    """Return the test figures of the other models, trained on the same rows."""
    config = TrainConfig.of(data=path, target="target", split_seed=seed).data
    assert isinstance(config, TableConfig)
    task = prepare(config)
    train, test = task.split.train, task.split.test
    plain, scaled = (train.features, test.features), tuple(task.inputs.scale(p.features) for p in (train, test))
    models = {
        "perceptron": (neural_network.MLPClassifier if classes else neural_network.MLPRegressor)(random_state=seed),
        "linear": linear_model.LogisticRegression(max_iter=1000) if classes else linear_model.Ridge(),
        "lightgbm": (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(
            random_state=seed, verbose=-1, n_jobs=1
        ),
    }
    found = {}
    for name, model in models.items():
        inputs = plain if name == "lightgbm" else scaled
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target = train.target if classes else task.targets.scale(train.target)
            answer = model.fit(inputs[0], target).predict(inputs[1])
        answer = answer if classes else task.targets.unscale(answer)
        against = ((test.target - train.target.mean()) ** 2).mean()
        found[name] = float(
            (answer == test.target).mean() if classes else 1 - ((answer - test.target) ** 2).mean() / against
        )
    return found


def compared(name: str, seeds: int, folder: Path) -> dict[str, Any]:
    """Return all figures on a set, by model, and whether ours is within a standard deviation of the perceptron."""
    classes = name in CLASSES
    path = folder / f"{name}.csv"
    table((CLASSES | NUMBERS)[name](), path, classes=classes)
    metric = "accuracy" if classes else "r2_vs_mean"
    found: dict[str, list[float]] = {"ours": [ours(path, seed, folder / "runs", metric) for seed in range(seeds)]}
    for seed in range(seeds):
        for model, value in theirs(path, seed, classes=classes).items():
            found.setdefault(model, []).append(value)
    mean = {model: statistics.mean(values) for model, values in found.items()}
    spread = {model: statistics.stdev(values) for model, values in found.items()}
    good = mean["ours"] >= mean["perceptron"] - max(spread["ours"], spread["perceptron"])
    return {"metric": metric, **found, "mean": mean, "standard_deviation": spread, "as_good": good}


def page(sets: dict[str, Any]) -> str:
    """Return the table of docs/tables.md."""
    models = ("ours", "perceptron", "lightgbm", "linear")
    lines = [
        "| set | figure | ours | scikit-learn's perceptron | LightGBM | linear |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, each in sets.items():
        shown = [f"{each['mean'][model]:.3f} ± {each['standard_deviation'][model]:.3f}" for model in models]
        figure = {"accuracy": "right answers", "r2_vs_mean": "R²"}[each["metric"]]
        made = "SYNTHETIC: " if name.startswith("made_") else ""
        lines.append(f"| {made}{name.replace('_', ' ')} | {figure} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    """Compare on all sets and keep the results."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--only", nargs="*", help="sets to measure again; the others stay")
    options = arguments.parse_args()
    packages = (torch, sklearn, statsmodels, lightgbm)
    versions = {package.__name__: package.__version__ for package in packages}
    sets = json.loads(RESULTS.read_text())["sets"] if RESULTS.exists() and options.only else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or [*CLASSES, *NUMBERS]:
            sets[name] = compared(name, options.seeds, Path(folder))
            print(
                page({name: sets[name]}).splitlines()[-1], "as good" if sets[name]["as_good"] else "WORSE", flush=True
            )
            content = {"versions": {**versions, "python": platform.python_version()}, "sets": sets}
            RESULTS.write_text(json.dumps(content, indent=1) + "\n")
    sets = {name: sets[name] for name in [*CLASSES, *NUMBERS] if name in sets}
    own = {name: each["as_good"] for name, each in sets.items() if not name.startswith("made_")}
    print(
        f"as good as the perceptron on {sum(own.values())} of {len(own)} bundled sets, {len(sets) - len(own)} SYNTHETIC"
    )
    docs = ROOT / "docs/tables.md"
    before, _, rest = docs.read_text().partition(BEGIN)
    docs.write_text(f"{before}{BEGIN}\n{page(sets)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
