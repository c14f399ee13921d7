"""No added package replaces what the cell holds: by a line, by a dependency, or by the files of its wheel."""

import zipfile

import pytest

from rocmatrix.images import wheelhouse
from rocmatrix.images.added import conflicts
from rocmatrix.matrix.cells.wheel import Wheel
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.companion_locks import CELL, lock, versions
from tests.fixtures.stand_ins import stand_in_wheel


def test_line_of_a_companion_without_bounds_takes_those_of_the_cells_torch(python_index, tmp_path):
    for version in ("4.57.6", "5.30.0", "6.0.0"):
        python_index.add("transformers", version)
    assert versions(lock(tmp_path, "Transformers\n")) == {"transformers": "5.30.0"}


@pytest.mark.parametrize(
    "line", ["torch==2.5.1", "torch<2", "torch==2.12.1+cu126", "numpy<2", "triton==2.1", "torchvision==0.20"]
)
def test_line_that_asks_for_another_version_of_the_cells_is_rm018(tmp_path, line):
    with pytest.raises(RocmatrixError) as refused:
        lock(tmp_path, f"rich\n{line}\n")
    assert refused.value.code == "RM018"
    name = line.partition("=")[0].partition("<")[0]
    assert "file-" in refused.value.where
    assert line in refused.value.why
    held = {"torch": "2.12.1+rocm7.2", "torchvision": "0.27.1+rocm7.2"} | conflicts.provided(CELL)
    assert held[name] in refused.value.why
    assert f"Remove the bounds of {name}" in refused.value.next


def test_refusal_names_a_cell_of_the_card_whose_torch_the_file_asks_for(tmp_path):
    with pytest.raises(RocmatrixError, match=r"--cell rocm6\.3-torch2\.7\.1-gfx1100"):
        lock(tmp_path, "torch==2.7.*\n")


def test_dependency_that_asks_for_another_torch_is_refused_with_who_asks(python_index, tmp_path):
    python_index.add("old-package", "1.0", "Requires-Dist: torch==2.5.1")
    python_index.add("torch", "2.5.1")
    with pytest.raises(RocmatrixError) as refused:
        lock(tmp_path, "old-package\n")
    assert refused.value.code == "RM105"
    assert "old-package 1.0 depends on torch==2.5.1" in refused.value.why
    assert "torch==2.12.1+rocm7.2" in refused.value.why


def test_package_for_another_makers_cards_is_refused_by_name_and_as_a_dependency(python_index, tmp_path):
    for line in ("nvidia-cublas-cu12", "onnxruntime_gpu", "cupy-cuda12x"):
        with pytest.raises(RocmatrixError, match=r"RM013[\s\S]*wheel"):
            lock(tmp_path, f"{line}\n")
    python_index.add("serving", "1.0", "Requires-Dist: nvidia-nccl-cu12")
    python_index.add("nvidia-nccl-cu12", "2.0")
    with pytest.raises(RocmatrixError) as refused:
        lock(tmp_path, "serving\n")
    assert "nvidia-nccl-cu12, which another package asks for" in refused.value.what
    python_index.add("monitor", "1.0", "Requires-Dist: nvidia-ml-py")
    python_index.add("nvidia-ml-py", "13.0")
    assert versions(lock(tmp_path, "monitor\n")) == {"monitor": "1.0", "nvidia-ml-py": "13.0"}


def test_torchvision_as_a_dependency_is_the_releases_own(python_index, tmp_path):
    python_index.add("timm", "1.0.31", "Requires-Dist: torch", "Requires-Dist: torchvision")
    python_index.add("torchvision", "0.28.0")  # built for CUDA on the index of Python
    assert versions(lock(tmp_path, "timm\n")) == {"timm": "1.0.31", "torchvision": "0.27.1+rocm7.2"}


def test_plain_triton_as_a_dependency_is_what_torch_brings(python_index, tmp_path):
    python_index.add("liger-kernel", "0.8.5", "Requires-Dist: triton>=2.3.1")
    python_index.add("triton", "3.9.9")  # would write over the folder of triton-rocm
    assert versions(lock(tmp_path, "liger-kernel\n")) == {"liger-kernel": "0.8.5"}


def test_other_bytes_than_the_file_names_are_rm018(python_index, tmp_path):
    wheel = python_index.add("rich", "13.9")
    good = wheelhouse.sha256(wheel)
    assert versions(lock(tmp_path, f"rich==13.9 --hash=sha256:{good}\n")) == {"rich": "13.9"}
    with pytest.raises(RocmatrixError, match=rf"RM018[\s\S]*{good}"):
        lock(tmp_path, f"rich==13.9 --hash=sha256:{'00' * 32}\n")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("torch/__init__.py", "torch/__init__.py"),
        ("evil-1.0.data/purelib/torch/__init__.py", "torch/__init__.py"),
        ("evil-1.0.data/data/lib/python3.12/site-packages/torch/__init__.py", "torch/__init__.py"),
        ("evil-1.0.data/scripts/torchrun", "bin/torchrun"),
        ("evil-1.0.dist-info/entry_points.txt", "bin/torchrun"),
    ],
)
def test_wheel_that_writes_over_torch_is_rm110(tmp_path, name, path):
    own, evil = stand_in_wheel("torch", "2.0", tmp_path), stand_in_wheel("evil", "1.0", tmp_path)
    with zipfile.ZipFile(own, "a") as archive:
        archive.writestr("torch-2.0.dist-info/entry_points.txt", "[console_scripts]\ntorchrun = torch.run:main\n")
    with zipfile.ZipFile(evil, "a") as archive:
        archive.writestr(name, "[console_scripts]\ntorchrun=evil:main\n")
    cell = cell_of(own, evil, added=evil)
    with pytest.raises(RocmatrixError, match="RM110") as refused:
        wheelhouse.fetch(cell, tmp_path)
    assert refused.value.where == evil.name
    assert path in refused.value.why


def test_wheel_next_to_torch_with_files_of_its_own_is_taken(tmp_path):
    own, other = stand_in_wheel("torch", "2.0", tmp_path), stand_in_wheel("torchmetrics", "1.0", tmp_path)
    assert wheelhouse.fetch(cell_of(own, other, added=other), tmp_path) == tmp_path


def cell_of(*wheels, added):
    rows = tuple(
        (path.name, Wheel(name=path.name.partition("-")[0], version="1.0", sha256=wheelhouse.sha256(path),
                          index="python", sources=["a STAND-IN of the tests"], confidence="measured here"))
        for path in wheels
    )  # fmt: skip
    return CELL.model_copy(update={"wheels": rows, "added": (added.name,)})
