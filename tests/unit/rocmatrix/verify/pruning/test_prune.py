"""Pruning on SYNTHETIC wheel trees: other architectures' files go, own and shared ones stay, and nothing is silent."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmatrix.images import build
from rocmatrix.verify.devicecode import filetree
from rocmatrix.verify.devicecode.names import target_of
from rocmatrix.verify.pruning import prune
from tests.fixtures import cells
from tests.fixtures.device_code import aks2, code_object, wheel_tree
from tests.fixtures.trees import write

ROOT = Path(__file__).resolve().parents[5]
ARCHITECTURES = sorted(cells.MATRIX.architectures)
KEPT = {
    "torch/lib/libtorch_hip.so",
    "torch/lib/librocblas.so",
    "torch/lib/rocblas/library/TensileLibrary_Type_HH_Contraction_l_fallback.dat",
    "torch/lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat",
}


def names(root):
    return {entry.path.removeprefix("/") for entry in filetree.on_disk(root) if entry.kind == "file"}


def test_other_architectures_go_and_own_and_shared_files_stay(tmp_path):
    write(tmp_path, wheel_tree("gfx1100", "gfx906", "gfx90a"))
    done = prune.prune(tmp_path, "gfx1100")
    left = names(tmp_path)
    assert left == set(wheel_tree("gfx1100"))
    assert left > KEPT
    assert done["before"] - done["after"] > 0
    assert done["libraries"]["rocblas"] == {"removed": 6, "own": 3, "shared": 1}
    assert {name for name, row in done["libraries"].items() if row["removed"]} == {
        "rocblas", "hipblaslt", "AOTriton", "MIOpen",
    }  # fmt: skip


@pytest.mark.parametrize(("architecture", "stays"), [("gfx1103", True), ("gfx1151", True), ("gfx1201", False)])
def test_familys_folder_stays_for_every_card_of_the_family(tmp_path, architecture, stays):
    family = "torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2"
    other = "torch/lib/aotriton.images/amd-gfx942/flash/attn_fwd.aks2"
    write(tmp_path, wheel_tree(architecture) | {family: aks2(code_object("gfx1100")), other: b"AKS2"})
    prune.prune(tmp_path, architecture)
    assert (family in names(tmp_path)) == stays
    assert other not in names(tmp_path)


@pytest.mark.parametrize(
    ("files", "architecture", "why"),
    [
        (wheel_tree("gfx1100"), "gfx1100", "no file for an architecture other than gfx1100"),
        (wheel_tree("gfx1100"), "gfx1201", "rocblas has no file for gfx1201"),
        ({"torch/__init__.py": b"host-only"}, "gfx1100", "no file for an architecture other than"),
        ({"x/hipblaslt/library/Kernels_gfx906.co": b"x"}, "gfx1100", "no library has a file for gfx1100"),
    ],
)
def test_prune_refuses_before_it_removes_a_file(tmp_path, files, architecture, why):
    write(tmp_path, files)
    with pytest.raises(prune.RefusedError, match=why):
        prune.prune(tmp_path, architecture)
    assert names(tmp_path) == set(files)


def test_empty_own_file_does_not_count_as_one(tmp_path):
    files = {path: b"" if "gfx1100" in path else data for path, data in wheel_tree("gfx1100", "gfx906").items()}
    write(tmp_path, files)
    with pytest.raises(prune.RefusedError, match="rocblas has no file"):
        prune.prune(tmp_path, "gfx1100")


def test_bytes_that_do_not_go_down_are_a_failure(tmp_path, monkeypatch):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))
    monkeypatch.setattr(prune, "remove", lambda libraries: None)
    with pytest.raises(prune.RefusedError, match="bytes before"):
        prune.prune(tmp_path, "gfx1100")


def test_file_that_goes_though_it_was_to_stay_is_a_failure(tmp_path, monkeypatch):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))

    def all_of_it(libraries):
        for library in libraries.values():
            for path in (*library.own, *library.foreign):
                path.unlink()

    monkeypatch.setattr(prune, "remove", all_of_it)
    with pytest.raises(prune.RefusedError, match="were to stay are gone"):
        prune.prune(tmp_path, "gfx1100")


@given(st.sets(st.sampled_from(ARCHITECTURES), min_size=2, max_size=4), st.data())
@settings(max_examples=25, deadline=None)
def test_whatever_is_planned_to_go_is_named_for_another_architecture(tmp_path_factory, architectures, data):
    own = data.draw(st.sampled_from(sorted(architectures)))
    root = write(tmp_path_factory.mktemp("wheel"), wheel_tree(*sorted(architectures)))
    for library in prune.plan(root, own).values():
        assert all(not target_of(path.as_posix()).runs_on(own) for path in library.foreign)
        assert all(target_of(path.as_posix()).runs_on(own) for path in library.own)
        assert all(target_of(path.as_posix()) is None for path in library.shared)


def test_prune_runs_with_the_files_that_the_build_gives_it(tmp_path):
    """As in the Dockerfile: no site-packages, and only what rocmatrix/.dockerignore lets through."""
    package = tmp_path / "pruner" / "rocmatrix"
    for name in build.PRUNER_FILES:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes((ROOT / "rocmatrix" / name).read_bytes())
    wheel = write(tmp_path / "lib", wheel_tree("gfx1100", "gfx906"))
    argv = [sys.executable, "-S", "-m", "rocmatrix.verify.pruning.prune", "--architecture", "gfx1100"]
    environment = {"PYTHONPATH": str(package.parent)}
    runs = [
        subprocess.run([*argv, str(wheel)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert json.loads(runs[0].stdout)["architecture"] == "gfx1100"
    assert (runs[1].returncode, runs[1].stdout) == (1, "")
    assert runs[1].stderr.startswith("RM220 ")
    assert len(runs[1].stderr.splitlines()) == 1


def test_ignore_file_of_the_context_names_the_files_that_are_hashed():
    lines = (ROOT / "rocmatrix" / ".dockerignore").read_text().splitlines()
    let_through = [line.removeprefix("!") for line in lines if line.startswith("!")]
    matched = {
        path.relative_to(ROOT / "rocmatrix").as_posix()
        for pattern in let_through
        for path in (ROOT / "rocmatrix").glob(pattern)
    }
    assert matched == set(build.PRUNER_FILES)
    assert "*" in lines


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("torch/lib/rocblas/library/a_gfx906.co", "rocblas"),
        ("torch/lib/library/hipblaslt/a.co", "hipblaslt"),
        ("torch/lib/aotriton.images/amd-gfx942/a.aks2", "AOTriton"),
        ("torch/share/miopen/db/gfx906.db", "MIOpen"),
        ("torch/lib/rocblas/library/liba.so", None),
        ("torch/lib/rocblas/library/liba.so.4", None),
        ("torch/lib/rocblas/library/a.so-000.co", "rocblas"),
        ("torch/lib/rocblas/a.co", None),
        ("torch/lib/other/library/a.co", None),
        ("torch/rocblas/library", None),
        ("torch/lib/miopen", None),
    ],
)
def test_library_of_a_file_follows_from_its_folders(path, library):
    assert prune.library_of(Path(path)) == library


def test_size_counts_a_hard_linked_file_once_and_no_link(tmp_path):
    write(tmp_path, {"a/one": b"12345", "two": b"123"})
    (tmp_path / "again").hardlink_to(tmp_path / "a" / "one")
    (tmp_path / "link").symlink_to("two")
    os.mkfifo(tmp_path / "pipe")
    assert prune.size(tmp_path) == 8


def test_folders_that_pruning_empties_go_and_a_link_stays(tmp_path):
    deep = "torch/lib/aotriton.images/amd-gfx942"
    write(tmp_path, wheel_tree("gfx1100") | {f"{deep}/a.aks2": b"AKS2", f"{deep}/b/c/d.aks2": b"AKS2"})
    (tmp_path / "torch/lib/rocblas/library/Kernels_gfx906.co").symlink_to("nowhere")
    done = prune.prune(tmp_path, "gfx1100")
    assert not (tmp_path / deep).exists()
    assert (tmp_path / deep).parent.is_dir()
    assert (tmp_path / "torch/lib/rocblas/library/Kernels_gfx906.co").is_symlink()
    assert (done["architecture"], done["before"] - done["after"]) == ("gfx1100", 8)
    assert done["libraries"]["AOTriton"] == {"removed": 2, "own": 1, "shared": 0}
    assert list(done["libraries"]) == sorted(done["libraries"])


def test_program_prints_one_line_and_its_status_states_the_outcome(tmp_path, capsys):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))
    argv = ["--architecture", "gfx1100", str(tmp_path)]
    assert prune.main(argv) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["libraries"]["rocblas"]["own"], printed.err) == (3, "")
    assert prune.main(argv) == 1
    refused = "no file for an architecture other than gfx1100 was found"
    assert capsys.readouterr() == ("", f"RM220 Pruning failed: {refused}\n")
    for wrong in (argv[:2], argv[2:]):
        with pytest.raises(SystemExit, match="2"):
            prune.main(wrong)
        assert capsys.readouterr().err.startswith("usage: prune ")


def test_folder_that_cannot_be_changed_is_a_failure(tmp_path, monkeypatch, capsys):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))

    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    assert prune.main(["--architecture", "gfx1100", str(tmp_path)]) == 1
    assert "Permission denied" in capsys.readouterr().err


def test_lost_file_is_named(tmp_path, monkeypatch):
    write(tmp_path, wheel_tree("gfx1100", "gfx906"))
    lost = tmp_path / "torch/lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat"
    remove = prune.remove
    monkeypatch.setattr(prune, "remove", lambda libraries: (remove(libraries), lost.unlink()))
    with pytest.raises(prune.RefusedError, match=f"^1 files that were to stay are gone, such as {lost}$"):
        prune.prune(tmp_path, "gfx1100")


def test_help_states_what_the_program_does_and_takes(capsys):
    with pytest.raises(SystemExit):
        prune.main(["--help"])
    printed = capsys.readouterr().out
    for words in ("Keep the kernels of one architecture.", "such as gfx1100", "where the wheels are installed"):
        assert words in printed


def test_outcome_that_cannot_be_printed_is_a_failure(tmp_path, monkeypatch, capsys):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

    write(tmp_path, wheel_tree("gfx1100", "gfx906"))
    monkeypatch.setattr(sys, "stdout", Full())
    assert prune.main(["--architecture", "gfx1100", str(tmp_path)]) == 1
    assert "No space left on device" in capsys.readouterr().err
