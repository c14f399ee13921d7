"""From a file to a feature file and to a model: real hourly EURUSD bars, and SYNTHETIC minute bars."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.synthetic_bars import synthetic_bars, write_synthetic
from trainer.analysis import features
from trainer.analysis.features import WIDEST, catalog_lines
from trainer.cli import main
from trainer.data.bar import Bars
from trainer.data.features.catalog import CATALOG, NAMES
from trainer.data.features.feature_file import read_table
from trainer.runtime.errors import TrainerError

FX = ["--time-zone", "UTC", "--session", "17:00-17:00", "--half-days", "none"]


@pytest.fixture(scope="module")
def eurusd() -> Path:
    found = importlib.util.find_spec("backtesting")  # importing it would draw plots' libraries in
    if found is None or found.origin is None:
        pytest.skip("the package backtesting, which holds the hourly EURUSD bars, is for tests alone")
    return Path(found.origin).parent / "test" / "EURUSD.csv"


@pytest.fixture
def minutes(tmp_path: Path) -> Path:
    path = tmp_path / "synthetic.csv"
    write_synthetic(path, 390 * 26, seed=5)
    return path


def test_real_hourly_bars_become_a_model(eurusd: Path, tmp_path: Path, torch_as_before: None) -> None:
    cache = tmp_path / "cache"
    for run in ("first", "second"):
        flags = ["--epochs=2", f"--output={tmp_path}", f"--run={run}", f"--cache={cache}", "--data_fraction=0.5"]
        assert main(["train", f"--data={eurusd}", *flags, *FX]) == 0
    one, two = (json.loads((tmp_path / run / "metadata.json").read_text()) for run in ("first", "second"))
    made = one["feature_set"]
    assert (made["set"], len(one["features"]), len(made["left_out"])) == ("intraday", 49, 5)
    assert made["conventions"]["profile"]["tick"] == 1e-05
    assert one["data"]["rows"] == 5000
    assert [made["cached"], two["feature_set"]["cached"]] == [False, True]
    assert one["artifacts"]["model.safetensors"] == two["artifacts"]["model.safetensors"]
    assert main(["predict", f"--model={tmp_path / 'first'}", f"--data={eurusd}", f"--output={tmp_path / 'p.csv'}"]) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) > 4000


@pytest.mark.parametrize("target", ["return", "direction"])
def test_other_targets_stay_in_their_session_and_are_named(
    minutes: Path, tmp_path: Path, target: str, torch_as_before: None
) -> None:
    weights = ["--class-weights=balanced"] if target == "direction" else []
    flags = ["--epochs=1", "--batch-size=512", f"--target={target}", "--horizon=30", "--embargo=40"]
    assert main(["train", f"--data={minutes}", f"--output={tmp_path}", "--run=r", *flags, *weights]) == 0
    metadata = json.loads((tmp_path / "r" / "metadata.json").read_text())
    assert metadata["target"]["name"] == f"{target}_next"
    assert metadata["target"]["classes"] == (2 if target == "direction" else 0)
    assert (metadata["target"]["class_weights"] is None) == (target == "return")
    assert metadata["split"]["embargo"] == 40
    assert metadata["data"]["source"].startswith("synthetic")
    rows = sum(metadata["split"][part]["rows"] for part in ("train", "validation", "test")) + 2 * 40
    known = metadata["feature_set"]["rows"]["in_sessions"] - metadata["feature_set"]["rows"]["past_too_short"]
    assert known - 7 * 30 <= rows <= known - 6 * 30  # the last 30 bars of each session have no target


@pytest.mark.parametrize("flags", [["--embargo=4"], ["--class-weights=balanced"]])
def test_settings_that_contradict_each_other_are_refused(flags: list[str], tmp_path: Path) -> None:
    assert main(["train", f"--output={tmp_path}", *flags]) == 2


def test_feature_file_holds_names_values_and_conventions(minutes: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.arrow" for n in range(2)]
    for file, chunk in zip(files, (313, 100_000), strict=True):
        assert main(["features", f"--data={minutes}", f"--out={file}", f"--chunk_size={chunk}"]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    table = read_table(files[0])
    assert table.names == NAMES
    assert table.features.shape == (390 * 26, 54)
    assert table.record["conventions"]["profile"]["value_share"] == 7000
    assert table.record["rows"]["prices_rounded_to_tick"] == 0
    files[0].write_bytes(files[0].read_bytes()[:-8])
    with pytest.raises(TrainerError, match="RM576"):
        read_table(files[0])


def test_key_follows_input_and_conventions(minutes: Path, tmp_path: Path) -> None:
    def key(*flags: str) -> str:
        assert main(["features", f"--data={minutes}", f"--out={tmp_path / 'f.arrow'}", *flags]) == 0
        metadata: str = json.loads((tmp_path / "f.arrow.json").read_text())["key"]
        return metadata

    first = key()
    assert key("--chunk-size=500") == first
    assert len({first, key("--row-ticks=4"), key("--value-area=0.68"), key("--half-days=none")}) == 4
    minutes.write_text(minutes.read_text() + minutes.read_text().splitlines()[-1].replace("2003", "2004") + "\n")
    assert key() != first


def test_bad_rows_are_in_the_metadata_and_reported(
    minutes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = minutes.read_text().splitlines()
    lines[100] = lines[100].rsplit(",", 1)[0] + ",nonsense"
    minutes.write_text("\n".join(lines) + "\n")
    arguments = ["features", f"--data={minutes}", f"--out={tmp_path / 'f.arrow'}"]
    assert main([*arguments, "--on-bad-row=error"]) == 2
    assert "line 101" in capsys.readouterr().err
    assert not (tmp_path / "f.arrow").exists()
    assert main(arguments) == 0
    assert "1 dropped, a cell is no number (first: line 101)" in capsys.readouterr().err
    metadata = json.loads((tmp_path / "f.arrow.json").read_text())
    assert metadata["input"]["read"]["bad_rows"]["dropped"] == {"number": 1}


def test_bars_are_never_written_over_and_a_pipe_stays(
    minutes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "bars.json"  # the name of what `features` writes beside --out bars
    data.write_bytes(minutes.read_bytes())
    os.mkfifo(tmp_path / "pipe")
    for out in (data, tmp_path / "bars", tmp_path / "pipe", tmp_path):
        assert main(["features", f"--data={data}", f"--out={out}"]) == 2
        assert capsys.readouterr().err.startswith("RM500")
    assert data.read_bytes() == minutes.read_bytes() and (tmp_path / "pipe").is_fifo()


def test_daily_bars_have_no_intraday_features(
    make_bars: Callable[..., Bars], write_csv: Callable[[Bars], Path], tmp_path: Path
) -> None:
    path = write_csv(make_bars(50))
    assert main(["features", f"--data={path}", f"--out={tmp_path / 'f.arrow'}"]) == 2
    assert main(["train", f"--data={path}", f"--output={tmp_path}", "--features=intraday"]) == 2


def test_hours_that_hold_no_bar_are_named(minutes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", f"--data={minutes}", f"--out={tmp_path / 'f.arrow'}", "--session=02:00-03:00"]) == 2
    message = capsys.readouterr().err
    assert "RM578" in message and "--session 00:00-24:00" in message and "02:00-03:00" in message


def test_list_needs_nothing_but_python() -> None:
    code = "import sys, trainer.cli as c; c.main(['features','--list']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f" {name} " in done.stdout for name in NAMES)
    assert not {"numpy", "polars", "torch"} & set(done.stderr.split())


def test_synthetic_bars_are_what_they_claim() -> None:
    bars, again = synthetic_bars(390 * 40), synthetic_bars(390 * 40)
    assert all(np.array_equal(getattr(bars, name), getattr(again, name)) for name in vars(bars))
    assert np.array_equal(np.rint(bars.close / 0.25) * 0.25, bars.close)
    assert ((bars.low <= bars.open) & (bars.open <= bars.high)).all()
    assert (np.diff(bars.date).astype(int) > 0).all()
    minute = bars.date.astype("M8[m]").astype(int) % 1440 - 570
    edge, middle = bars.volume[(minute < 30) | (minute > 360)].mean(), bars.volume[abs(minute - 195) < 30].mean()
    assert edge > 2 * middle


@pytest.mark.parametrize("which", ["table", "daily"])
def test_features_of_intraday_bars_are_the_only_ones_written(which: str, minutes: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "f.arrow"
    assert main(["features", f"--data={minutes}", f"--out={out}", f"--features={which}"]) == 2
    stderr = capsys.readouterr().err
    assert "RM500" in stderr
    assert f"--features {which}" in stderr
    assert not out.exists()


def test_catalog_prints_each_feature_once_below_its_group(capsys: pytest.CaptureFixture[str]) -> None:
    features.print_catalog()
    lines = capsys.readouterr().out.splitlines()
    numbered = [line for line in lines if line[:3].strip().isdigit()]
    assert [line.split()[:2] for line in numbered] == [[str(n), name] for n, name in enumerate(NAMES, 1)]
    groups = list(dict.fromkeys(each.group for each in CATALOG))
    heads = {group: [line for line in lines if line.startswith(group)] for group in groups}
    assert all(len(found) == 1 for found in heads.values())
    of_vix = {each.group for each in CATALOG if each.needs_vix}
    assert {group for group, (head,) in heads.items() if "no VIX column" in head} == of_vix


@pytest.mark.parametrize("given", [{}, {"data": Path("a.csv")}, {"out": Path("a.arrow")}])
def test_features_without_data_or_a_place_are_refused(given: dict[str, Path]) -> None:
    with pytest.raises(TrainerError) as caught:
        features.run(given)
    assert (caught.value.code, "--data FILE and --out FILE, or --list" in str(caught.value.what)) == ("RM500", True)


def test_list_computes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(features, "write", lambda *_: pytest.fail("a file was written"))
    assert features.run({"list": True, "data": Path("a.csv"), "out": Path("a.arrow")}) == 0
    assert NAMES[0] in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["--target=return", "--embargo=3", "--class-weights=balanced"])
def test_setting_that_decides_no_feature_is_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "--list", flag]) == 2
    assert f"{flag.partition('=')[0]} is not known to features" in capsys.readouterr().err


@pytest.mark.parametrize("width", [40, 80])
def test_list_of_features_fits_a_terminal_and_loses_no_word(width: int) -> None:
    lines = list(catalog_lines(width))
    assert max(map(len, lines)) < width
    words = " ".join(" ".join(lines).split())
    for feature in CATALOG:
        assert f"{feature.name} [{feature.unit}] {feature.formula}" in words


def test_list_of_features_on_a_pipe_has_each_formula_in_a_line() -> None:
    lines = list(catalog_lines(WIDEST))
    assert all(f"    {feature.formula}" in lines for feature in CATALOG)
