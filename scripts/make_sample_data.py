"""Remake trainer/data/sp500_vix_daily.csv, byte for byte, from the arch 8.0.0 wheel.

    pip download --no-deps --dest WHEELS arch==8.0.0
    python scripts/make_sample_data.py WHEELS/arch-8.0.0-*.whl

Rows are the trading days that both tables of the wheel hold. The source carries prices as float32
printed in decimal (1833.209961 for 1833.21); index levels are quoted in cents, so two decimals lose nothing.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import zipfile
from datetime import datetime
from pathlib import Path

CSV = Path(__file__).parents[1] / "trainer" / "data" / "sp500_vix_daily.csv"
HEADER = ("date", "open", "high", "low", "close", "volume", "vix_close")


def rows_of(wheel: zipfile.ZipFile, table: str) -> dict[str, dict[str, str]]:
    """Return one of the wheel's tables as rows by ISO date."""
    text = gzip.decompress(wheel.read(f"arch/data/{table}/{table}.csv.gz")).decode("ascii")
    rows = csv.DictReader(io.StringIO(text))
    return {datetime.strptime(row["Date"], "%m/%d/%Y").date().isoformat(): row for row in rows}


def joined(wheel: zipfile.ZipFile) -> str:
    """Return the CSV's text: S&P 500 bars with the VIX close of the same day."""
    bars, vix = rows_of(wheel, "sp500"), rows_of(wheel, "vix")
    lines = [",".join(HEADER)]
    for date in sorted(bars.keys() & vix.keys()):
        prices = [f"{float(bars[date][name]):.2f}" for name in ("Open", "High", "Low", "Close")]
        lines.append(",".join([date, *prices, bars[date]["Volume"], f"{float(vix[date]['vix']):.2f}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the CSV and print its row count and hash, the two figures that SOURCE.md repeats."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="the arch 8.0.0 wheel (any platform: the data is the same)")
    parser.add_argument("--output", type=Path, default=CSV, help="file to write")
    arguments = parser.parse_args()
    with zipfile.ZipFile(arguments.wheel) as wheel:
        content = joined(wheel).encode("ascii")
    arguments.output.write_bytes(content)
    rows, digest = len(content.splitlines()) - 1, hashlib.sha256(content).hexdigest()
    print(f"{arguments.output.name}: {rows} rows, sha256 {digest}")


if __name__ == "__main__":
    main()
