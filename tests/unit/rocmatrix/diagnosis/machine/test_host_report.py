"""A file of `doctor --json` is read as what is known of the machine of a log."""

import json

import pytest

from rocmatrix.diagnosis.machine import host_report
from rocmatrix.runtime.errors import RocmatrixError

REPORT = {
    "checks": [
        {"code": "D101", "title": "t", "status": "ok", "seen": "s"},
        {"code": "D110", "title": "t", "status": "error", "seen": "s"},
        {"code": "D205", "title": "t", "status": "warning", "seen": "s"},
    ],
    "inventory": {"cards": [{"architecture": "gfx1100"}, {"architecture": "gfx1036"}, {"architecture": None}]},
}


def test_report_gives_failed_and_warning_checks_and_cards(tmp_path):
    path = tmp_path / "doctor.json"
    path.write_text(json.dumps(REPORT))
    seen = host_report.read(path)
    assert (seen.failed, seen.warned) == ({"D110"}, {"D205"})
    assert seen.architectures == ("gfx1100", "gfx1036")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"checks": [1]}', '{"checks": [], "inventory": {"cards": [3]}}'])
def test_file_that_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "doctor.json"
    path.write_text(text)
    with pytest.raises(RocmatrixError) as refused:
        host_report.read(path)
    assert refused.value.code == "RM686"


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(RocmatrixError) as refused:
        host_report.read(tmp_path / "none.json")
    assert refused.value.code == "RM686"
