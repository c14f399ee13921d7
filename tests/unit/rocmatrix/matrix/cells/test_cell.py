"""A cell's name, its companions, and why it cannot be built from checked wheels alone."""

import pytest

from rocmatrix.matrix.cells.cell import Base, Cell
from rocmatrix.matrix.statement import Evidence
from tests.fixtures.cells import CPU, GFX906, GFX1100, MATRIX

SPLIT = MATRIX.cell("rocm10.0-torch2.13.0-gfx1100")


def test_companions_are_part_of_the_name_once_and_in_order():
    one = GFX1100.adding(["peft"])
    assert one.name == f"{GFX1100.name}-with-peft"
    both = one.adding(["datasets", "peft"])
    assert (both.name, both.companions) == (f"{GFX1100.name}-with-datasets-peft", ("datasets", "peft"))
    assert both.image_name == both.name
    assert GFX1100.adding([]).name == GFX1100.name
    assert isinstance(one, Cell)


@pytest.mark.parametrize(("suffix", "named"), [("", False), ("-py{python}", True), ("-py3.99", False)])
def test_python_is_in_the_name_where_it_is_not_the_usual_one(suffix, named):
    name = GFX1100.name + suffix.format(python=GFX1100.python)
    cell = GFX1100.model_copy(update={"name": name})
    assert cell.names_python is named
    assert cell.adding(["peft"]).names_python is named


def wheels(cell, keep):
    return cell.model_copy(update={"wheels": tuple(row for row in cell.wheels if keep(row[1]))})


def test_cell_is_unlocked_without_torch_or_without_other_packages():
    assert GFX1100.unlocked_because is None
    assert "no hash is recorded for torch" in wheels(GFX1100, lambda wheel: wheel.name != "torch").unlocked_because
    assert "other than torch" in wheels(GFX1100, lambda wheel: wheel.index != "python").unlocked_because


def test_cell_of_device_packages_needs_their_hashes():
    borrowed = GFX1100.wheels
    locked = SPLIT.model_copy(update={"wheels": borrowed})
    assert locked.unlocked_because == f"no hash is recorded for {', '.join(SPLIT.release.device_packages('gfx1100'))}"
    _, wheel = borrowed[0]
    names = SPLIT.release.device_packages("gfx1100")
    device = tuple((f"{name}-1.whl", wheel.model_copy(update={"name": name})) for name in names)
    assert SPLIT.model_copy(update={"wheels": (*borrowed, *device)}).unlocked_because is None
    assert (
        "no hash is recorded for " + names[1]
        == SPLIT.model_copy(update={"wheels": (*borrowed, device[0])}).unlocked_because
    )


def test_broken_cell_names_the_rules_that_decide_it_alone():
    (rule, *_) = [rule for rule in GFX906.rules if rule.decides]
    broken, caution = (
        rule.model_copy(update={"verdict": "broken", "id": name, "when": rule.when.model_copy(update=when)})
        for name, when in (("breaks", {}), ("cautions", {"given": "a second card"}))
    )
    cell = GFX906.model_copy(update={"rules": (rule, broken, caution)})
    assert [each.id for each in cell.broken_by] == ["breaks"]
    assert cell.verdict == "broken"
    assert GFX906.model_copy(update={"rules": ()}).verdict == "untested"


def test_images_of_device_packages_or_pruned_ones_hold_one_architecture():
    assert SPLIT.one_architecture
    for prune in (True, False):
        assert GFX1100.model_copy(update={"prune": prune}).one_architecture is prune
    assert CPU.requirement == CPU.release.requirement(None)
    assert (GFX1100.lock_name, SPLIT.lock_name) == (GFX1100.release.name, f"{SPLIT.release.name}-gfx1100")


def test_base_is_named_by_its_digest_where_that_is_known():
    seen = Evidence(sources=["a test"], confidence="reported", date="2026-11-21")
    base = Base(image="debian:bookworm", python="3.11", packages=[], evidence=seen)
    assert base.reference == "debian:bookworm"
    digest = f"sha256:{'0' * 64}"
    assert base.model_copy(update={"digest": digest}).reference == f"debian:bookworm@{digest}"
