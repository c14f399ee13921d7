"""Files in 130 further layouts: read right without an option, or refused with a next step that fits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainer.data.bar import joined
from trainer.data.readers.bars import Reading, open_source
from trainer.runtime.errors import TrainerError

LAYOUTS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("further_layouts.yaml").read_text())
BARS = {
    "open": [10.5, 11.5],
    "high": [12.5, 12.5],
    "low": [9.5, 9.5],
    "close": [11.5, 11],
    "volume": [100, 90],
}


def written(folder: Path, layout: dict[str, Any]) -> Path:
    (path := folder / "bars").write_bytes(layout["text"].encode(layout.get("encoding", "utf-8")))
    return path


@pytest.mark.parametrize("name", LAYOUTS["read"])
def test_layout_is_read_without_an_option(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS["read"][name]
    source = open_source(written(tmp_path, layout), Reading())
    found = joined(list(source.chunks()))[-2:]
    assert {role: getattr(found, role).tolist() for role in BARS} == BARS | {"volume": layout.get("volume", [100, 90])}
    assert (str(found.date[0]), source.zone or "days") == (layout["begin"], layout["zone"])


@pytest.mark.parametrize("name", LAYOUTS["refused"])
def test_layout_that_is_no_file_of_bars_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS["refused"][name]
    with pytest.raises(TrainerError) as caught:
        for _ in open_source(written(tmp_path, layout), Reading()).chunks():
            pass
    assert (caught.value.code, layout["words"] in str(caught.value)) == (layout["code"], True)
