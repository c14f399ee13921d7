"""Companions: every verdict has its evidence, a broken pairing is refused with its rule, the others are locked."""

import pytest

from rocmatrix.images import build, companion_lock
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


def test_companions_are_asked_for_by_the_cells_name_too(python_index, tmp_path):
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
