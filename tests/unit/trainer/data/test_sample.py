from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from trainer.runtime.paths import SAMPLE

SCRIPT = SAMPLE.parents[2] / "scripts" / "make_sample_data.py"


def wheel_with(folder: Path, sp500: str, vix: str) -> Path:
    """A stand-in for the arch wheel: the same two tables at the same places."""
    path = folder / "arch.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for table, text in (("sp500", sp500), ("vix", vix)):
            wheel.writestr(f"arch/data/{table}/{table}.csv.gz", gzip.compress(text.encode()))
    return path


def test_script_joins_by_day_sorts_and_rounds_to_cents(tmp_path: Path) -> None:
    sp500 = (
        "Date,Open,High,Low,Close,Adj Close,Volume\n"
        "1/6/2014,1832.310059,1837.160034,1823.72998,1826.77002,1826.77002,3294850000\n"
        "1/3/2014,1833.209961,1838.23999,1829.130005,1831.369995,1831.369995,2774270000\n"
        "1/2/2014,1,1,1,1,1,1\n"
    )
    vix = "Date,vix\n1/3/2014,13.76\n1/6/2014,13.55\n1/20/2014,12.87\n"
    made = tmp_path / "made.csv"
    command = [sys.executable, str(SCRIPT), str(wheel_with(tmp_path, sp500, vix)), "--output", str(made)]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shipped = SAMPLE.read_text().splitlines()[:3]
    assert made.read_text().splitlines() == shipped
    assert rows == f"made.csv: 2 rows, sha256 {hashlib.sha256(made.read_bytes()).hexdigest()}\n"


def test_note_names_the_shipped_bytes() -> None:
    assert hashlib.sha256(SAMPLE.read_bytes()).hexdigest() in SAMPLE.with_name("SOURCE.md").read_text()
