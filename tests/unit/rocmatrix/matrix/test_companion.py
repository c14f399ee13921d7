"""Companions: every verdict has its evidence, a broken pairing is refused with its rule, the others are locked."""

import pytest

from rocmatrix.images import build, companion_lock
from rocmatrix.matrix.companion import Companion, Pairing
from rocmatrix.matrix.rule import Rule
from rocmatrix.matrix.statement import Evidence, Selector
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.companions import BY_NAME, CELL, MATRIX, NAMES, ROOT, axes, prepare


def added(extended):
    return [row for row in extended.wheels if row not in CELL.wheels]


def test_companions_people_ask_for_are_all_described():
    assert set(NAMES) == {
        "torchvision", "torchaudio", "triton", "transformers", "peft", "accelerate", "bitsandbytes", "flash-attn",
        "aiter", "torchao", "deepspeed", "transformer-engine", "vllm", "xformers", "apex", "datasets", "trl",
        "diffusers", "timm", "wandb", "mlflow", "onnx", "tensorboard", "jupyterlab", "lightning", "liger-kernel",
        "nvidia-ml-py", "nvidia-*", "cuda-*", "tensorrt*", "cupy-cuda*", "onnxruntime-gpu", "flashinfer-python",
    }  # fmt: skip


def test_verdicts_have_a_source_a_date_and_an_expiry():
    for companion in MATRIX.companions:
        for rule in companion.rules:
            assert all(len(source) > 3 for source in rule.evidence.sources), rule.id
            assert rule.expires > rule.evidence.date


@pytest.mark.parametrize(
    ("package", "cell", "verdict"),
    [
        ("bitsandbytes", "rocm6.3-torch2.7.1-gfx906", "broken"),
        ("bitsandbytes", "rocm7.2-torch2.12.1-gfx1100", "works"),
        ("bitsandbytes", "rocm7.2-torch2.12.1-gfx950", "works"),
        ("flash-attn", "rocm7.2-torch2.12.1-gfx942", "degraded"),
        ("flash-attn", "rocm7.2-torch2.12.1-gfx1030", "degraded"),
        ("flash-attn", "rocm7.2-torch2.12.1-gfx908", "broken"),
        ("bitsandbytes", "rocm7.2-torch2.12.1-gfx1030", "broken"),
        ("bitsandbytes", "rocm7.2-torch2.12.1-gfx908", "broken"),
        ("bitsandbytes", "rocm7.14-torch2.14.1-gfx1100", "works"),
        ("vllm", "rocm7.2-torch2.12.1-gfx1100", "degraded"),
        ("vllm", "rocm7.2-torch2.12.1-gfx950", "degraded"),
        ("vllm", "rocm6.3-torch2.7.1-gfx906", "untested"),
        ("vllm", "rocm6.0-torch2.4.1-gfx906", "broken"),
        ("xformers", "rocm7.2-torch2.12.1-gfx1100", "untested"),
        ("apex", "rocm7.2-torch2.12.1-gfx1100", "degraded"),
        ("aiter", "rocm7.2-torch2.12.1-gfx1151", "degraded"),
        ("transformer-engine", "rocm7.2-torch2.12.1-gfx1100", "untested"),
        ("torchao", "rocm6.0-torch2.4.1-gfx906", "broken"),
        ("liger-kernel", "rocm7.2-torch2.12.1-gfx942", "works"),
        ("liger-kernel", "rocm7.2-torch2.12.1-gfx1100", "untested"),
        ("datasets", "rocm6.0-torch2.4.1-gfx906", "degraded"),
        ("onnxruntime-gpu", "rocm7.2-torch2.12.1-gfx1100", "broken"),
    ],
)
def test_verdicts(package, cell, verdict):
    assert BY_NAME[package].verdict(**axes(MATRIX.cell(cell))) == verdict


def test_unlocked_cell_takes_no_companions(tmp_path):
    with pytest.raises(RocmatrixError, match="RM102"):
        prepare(["peft"], tmp_path, cell=MATRIX.cell("rocm10.0-torch2.13.0-gfx1100"))


def test_companions_are_resolved_against_the_cells_own_torch(python_index, tmp_path):
    python_index.add("peft", "0.21.2", "Requires-Dist: torch>=1.13", "Requires-Dist: numpy", "Requires-Dist: regex")
    python_index.add("regex", "1.0")
    python_index.add("torch", "99.0")  # what pip would take for the ROCm build
    python_index.add("numpy", "99.0")
    extended = prepare(["peft"], tmp_path)
    assert {wheel.name for _, wheel in added(extended)} == {"peft", "regex"}
    assert all(row in extended.wheels for row in CELL.wheels)


def test_recorded_wheel_of_torchs_own_companion_needs_no_index(python_index, tmp_path):
    extended = prepare(["torchvision", "triton"], tmp_path)
    ((file, wheel),) = added(extended)
    assert file.startswith("torchvision-0.27.1+rocm7.2-cp312")
    assert wheel.index == "pytorch"


def test_companions_are_part_of_the_images_name_label_and_inputs(python_index, capsys):
    python_index.add("peft", "0.21.2")
    extended = prepare(["peft"], ROOT)
    place = build.made_recipe(extended, ROOT)
    assert place.is_relative_to(ROOT / ".rocmatrix")
    assert 'org.rocmatrix.companions="peft"' in (place / "Dockerfile").read_text()
    assert "peft==0.21.2" in (place / "requirements.lock").read_text()
    planned = build.build(extended, root=ROOT, dry_run=True)
    assert planned.tag == f"rocmatrix:{CELL.name}-with-peft"
    assert planned.inputs != build.input_hash(CELL, ROOT)
    assert str(place) in capsys.readouterr().out


def test_lock_of_companions_is_kept_until_the_cells_own_wheels_change(python_index, tmp_path):
    python_index.add("peft", "0.21.2")
    first = prepare(["peft"], tmp_path)
    python_index.add("peft", "0.21.3")
    assert prepare(["peft"], tmp_path) == first
    moved = CELL.model_copy(update={"wheels": CELL.wheels[1:]})
    assert {wheel.version for _, wheel in prepare(["peft"], tmp_path, moved).wheels if wheel.name == "peft"} == {
        "0.21.3"
    }


def test_companions_are_requested_by_the_cells_name_too(python_index, tmp_path):
    python_index.add("peft", "0.21.2")
    built = prepare(["peft"], tmp_path)
    again = MATRIX.cell(built.name)
    assert (again.name, again.companions, build.tag(again)) == (built.name, ("peft",), build.tag(built))
    assert companion_lock.locked(MATRIX, again, tmp_path) == built


def test_version_of_a_package_is_none_where_no_pairing_holds_the_combination():
    companion = next(each for each in MATRIX.companions if each.versions)
    assert companion.version(architecture="gfx1100", torch="0.1", rocm="0.1") is None
    empty = companion.model_copy(update={"versions": []})
    assert empty.version(**axes(CELL)) is None


SEEN = Evidence(sources=["a test"], confidence="reported", date="2026-11-21")


def rule(name, verdict, **when):
    return Rule(id=name, when=Selector(**when), verdict=verdict, reason="r", evidence=SEEN, expires="2027-01-01")


def pairing(version, **when):
    return Pairing(when=Selector(**when), version=version, evidence=SEEN)


PACKAGE = Companion(
    package="p",
    versions=[pairing(">=2", torch=">=2.9"), pairing(">=1", torch=">=2.5"), pairing("<1", rocm="<6")],
    rules=[
        rule("works-everywhere", "works"),
        rule("slow-on-old", "degraded", rocm="<6.3"),
        rule("broken-on-one", "broken", architectures=["gfx906"]),
        rule("only-with-two", "broken", given="a second card"),
    ],
)


@pytest.mark.parametrize(
    ("architecture", "rocm", "verdict"),
    [
        ("gfx1100", "6.3", "works"),
        ("gfx1100", "6.2.4", "degraded"),
        ("gfx906", "6.2.4", "broken"),
        (None, None, "works"),
    ],
)
def test_worst_deciding_rule_of_a_combination_is_its_verdict(architecture, rocm, verdict):
    assert PACKAGE.verdict(architecture=architecture, torch="2.9.1", rocm=rocm) == verdict


def test_rules_of_a_combination_are_those_that_match_it_in_their_order():
    found = PACKAGE.rules_on(architecture="gfx906", torch="2.9.1", rocm="6.2.4")
    assert [each.id for each in found] == ["works-everywhere", "slow-on-old", "broken-on-one", "only-with-two"]
    assert [each.id for each in PACKAGE.rules_on(architecture=None, torch="2.9.1", rocm=None)] == [
        "works-everywhere", "only-with-two",
    ]  # fmt: skip


def test_package_without_a_matching_rule_is_untested():
    lone = PACKAGE.model_copy(update={"rules": [rule("only-one", "works", architectures=["gfx942"])]})
    assert lone.verdict(architecture="gfx942", torch="2.9.1", rocm="7.2") == "works"
    assert lone.verdict(architecture="gfx950", torch="2.9.1", rocm="7.2") == "untested"


@pytest.mark.parametrize(
    ("torch", "rocm", "version"),
    [("2.9.0", "6.4", ">=2"), ("2.8.9", "6.4", ">=1"), ("2.4", "5.7", "<1"), ("2.4", "6.0", None), ("2.4", None, None)],
)
def test_first_pairing_that_holds_a_combination_names_the_version(torch, rocm, version):
    assert PACKAGE.version(architecture="gfx1100", torch=torch, rocm=rocm) == version
