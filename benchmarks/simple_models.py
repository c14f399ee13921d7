"""Seconds of the simpler models at the bounds of their work, on one thread and SYNTHETIC rows.

    python -m benchmarks.simple_models    # about half a CPU minute; results: benchmarks/results/simple_models.json

CPU seconds are those of the fit and of forecasts for 1,000 rows; wall seconds depend on what else the machine runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from trainer.data.dataset import Dataset  # noqa: E402
from trainer.tasks.metrics import simple_models  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "simple_models.json"
# Rows, columns, classes (0: a number). Each of logistic regression has all the numbers that it may have.
LOGISTIC = ((100_000, 25, 2), (50_000, 10, 10), (1_000_000, 25, 2), (20_000, 25, 20))
TREES = ((100_000, 25, 2), (100_000, 25, 0), (20_000, 25, 20), (1_000_000, 25, 0), (3_000, 300, 0), (1_000, 5, 0))


def task(rows: int, width: int, classes: int) -> Any:
    """Return what the models read of a task: normal columns, and a target that is their sum, with noise for a number.

    Classes have no noise, so that no weights separate them well enough to end the search early.
    """
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, width)).astype(np.float32)
    number = features @ rng.normal(size=width) / np.sqrt(width) + (0 if classes else rng.normal(size=rows))
    edges = np.quantile(number, np.linspace(0, 1, classes + 1)[1:-1]) if classes else []
    target = np.digitize(number, edges).astype(np.float64) if classes else number
    train = Dataset(date=np.arange(rows).astype("M8[s]"), features=features, target=target, persistence=target * np.nan)
    return SimpleNamespace(
        split=SimpleNamespace(train=train),
        features=[f"column {place}" for place in range(width)],
        labels=tuple(range(classes)) or None,
        embeddings=(),
        inputs=SimpleNamespace(scale=lambda values: values.astype(np.float64)),
    )


def timed(model: str, rows: int, width: int, classes: int) -> dict[str, Any]:
    """Return size, work and seconds of one fit.

    Args:
        model: logistic, trees or numpy_trees.
        rows: number of training rows there are.
        width: number of columns.
        classes: number of classes, 0 for a number.
    """
    made = task(rows, width, classes)
    wall, own = time.perf_counter(), time.process_time()
    fitted = getattr(simple_models, model)(made, {"test": made.split.train[:1000]})
    seconds = {"cpu_seconds": time.process_time() - own, "wall_seconds": time.perf_counter() - wall}
    rounded = {name: round(value, 2) for name, value in seconds.items()}
    sizes = {"rows": rows, "columns": width, "classes": classes, "fitted_rows": fitted.rows}
    return {"model": model, **sizes, "how": fitted.how, **rounded}


def machine() -> dict[str, Any]:
    """Return what the seconds were measured on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.processor(),
        "load_before": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def main() -> None:
    """Time each case, print a line each, and write the results."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"machine": machine(), "data": "SYNTHETIC", "cases": []}
    for model, sizes in (("logistic", LOGISTIC), ("trees", TREES), ("numpy_trees", TREES)):
        for size in sizes:
            results["cases"].append(timed(model, *size))
            print(results["cases"][-1], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
