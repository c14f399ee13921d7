"""Rules, driver windows, defaults and lists speak of the same combinations, and must not speak against each other."""

import re

import pytest

from rocmatrix.doctor.knowledge import is_within
from tests.fixtures import machines
from tests.fixtures.cells import MATRIX
from tests.fixtures.doctor import findings_on

REPORTS = [rule for rule in MATRIX.rules if rule.decides and rule.verdict == "works" and rule.drivers]


def module_versions(bounds):
    """Return the lowest module version of a range such as >=6.16.6,<6.17."""
    return re.findall(r">=([\d.]+)", bounds)


@pytest.mark.parametrize("rule", REPORTS, ids=lambda rule: rule.id)
def test_driver_under_which_an_owner_reports_a_pair_draws_no_warning(tmp_path, rule):
    cells = [cell for cell in MATRIX.cells if rule in cell.rules]
    assert cells, "the report is of no cell"
    for cell in cells:
        for version in module_versions(rule.drivers):
            machine = machines.two_rx_7900_xt(tmp_path)
            machine.write("sys/module/amdgpu/version", f"{version}\n")
            found = findings_on(machine, cell=cell)["D102"]
            assert found.status in ("ok", "note"), f"{cell.name} under {version}: {found.seen}"
            assert rule.id in found.seen or found.status == "ok"


def test_report_silences_the_window_for_its_own_driver_alone(tmp_path):
    cell = MATRIX.cell("rocm6.0-torch2.4.1-gfx906")
    machine = machines.two_rx_7900_xt(tmp_path)
    for version, status in (("6.16.6", "note"), ("6.14.14", "warning"), ("6.3.6", "ok")):
        machine.write("sys/module/amdgpu/version", f"{version}\n")
        assert findings_on(machine, cell=cell)["D102"].status == status, version


def test_defaults_are_listed_reported_or_the_only_kind():
    backed = {
        cell.architecture for cell in MATRIX.cells if cell.recommended and (cell.official or cell.verdict == "works")
    }
    for cell in MATRIX.cells:
        if cell.recommended and cell.architecture and cell.architecture not in backed:
            others = [other for other in MATRIX.cells if other.architecture == cell.architecture]
            assert not any(other.official and not other.unlocked_because for other in others), cell.name
            assert not any(other.verdict == "works" for other in others), cell.name


def test_texts_of_a_cell_do_not_contradict_amds_lists():
    for cell in MATRIX.cells:
        if found := re.search(r"official since ROCm ([\d.]+)", cell.why):
            line = ".".join(found[1].split(".")[:2])
            assert MATRIX.support_of(cell.architecture, line).official, cell.name
        if "never on AMD's list" in cell.why:
            assert not any(table.cards(cell.architecture) for table in MATRIX.support), cell.name


def test_mi50s_default_rule_and_window_agree():
    default = next(cell for cell in MATRIX.cells if cell.recommended and cell.architecture == "gfx906")
    assert default.verdict == "works"
    assert is_within("6.16.6", next(r.drivers for r in REPORTS if "gfx906" in (r.when.architectures or [])))
