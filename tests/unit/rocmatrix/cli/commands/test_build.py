"""`build` refuses, or carries the rule that it overrides."""

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

from rocmatrix.cli.commands import build as build_command
from rocmatrix.cli.commands import common
from rocmatrix.cli.commands.build import Build
from rocmatrix.cli.options.command import known
from rocmatrix.containers import engine
from rocmatrix.images.build import Built
from tests.fixtures import cells
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[5]


def test_forced_build_prints_the_rule_and_carries_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(build_command, "ROOT", tmp_path)
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    (tmp_path / "trainer").symlink_to(ROOT / "trainer")
    build_command.build(Build(gpu="MI50", rocm="7.2", dry_run=True, force=True))
    captured = capsys.readouterr()
    assert "FORCED against rule gfx906-rocblas-from-6.4" in captured.err
    assert "--label org.rocmatrix.forced=gfx906-rocblas-from-6.4" in captured.out


def test_recipe_that_has_drifted_is_not_built(tmp_path, capsys, monkeypatch):
    shutil.copytree(ROOT / "images" / cells.CPU.name, tmp_path / "images" / cells.CPU.name)
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(build_command, "ROOT", tmp_path)
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    build_cpu()
    assert "docker buildx build" in capsys.readouterr().out
    with (tmp_path / "images" / cells.CPU.name / "Dockerfile").open("a") as file:
        file.write("RUN true\n")
    with pytest.raises(SystemExit):
        build_cpu()
    assert "RM101" in capsys.readouterr().err


def build_cpu(wheelhouse=""):
    build_command.build(Build(gpu="cpu", wheelhouse=wheelhouse, dry_run=True))


@pytest.mark.parametrize(("rocm", "unlocked"), [("7.0", True), ("6.3", False)])
def test_image_of_an_unlocked_cell_is_reported_as_unchecked(monkeypatch, tmp_path, capsys, rocm, unlocked):
    monkeypatch.setattr(build_command, "ROOT", tmp_path)
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    monkeypatch.setattr(common, "prepared_cell", lambda matrix, cell, root: cell)
    planned = Built(tag="rocmatrix:other", inputs="0" * 64, argv=())
    monkeypatch.setattr("rocmatrix.images.build.build", lambda *_, **__: planned)
    build_command.build(Build(gpu="gfx1100", rocm=rocm, allow_unlocked=True))
    found = "unlocked: no hash is recorded for torch 2.10.0 on Python 3.12; it has what its index serves, unchecked"
    assert (found in capsys.readouterr().err) is unlocked


@pytest.mark.parametrize(("moved_to", "status"), [("sha256:b", 2), (None, None)])
def test_build_whose_tag_was_moved_names_both_images(monkeypatch, capsys, moved_to, status):
    image = engine.Image(id="sha256:a", labels={}, size=1)
    built = Built(tag="rocmatrix:cpu", inputs="0" * 64, argv=(), image=image, rebuilt=True, moved_to=moved_to)
    monkeypatch.setattr(build_command, "built_image", lambda *_, **__: built)
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    with pytest.raises(SystemExit) if status else contextlib.nullcontext() as ended:
        build_command.build(Build(gpu="cpu"))
    stderr = capsys.readouterr().err
    assert (
        "RM223" in stderr and "rocmatrix:cpu names sha256:b, not the image that was built, sha256:a" in stderr
    ) is bool(status)
    assert status is None or ended.value.code == status


@pytest.mark.parametrize("base", [" ", "Ubuntu LATEST", "--privileged", "a\nb"])
def test_base_that_names_no_image_is_refused_before_anything_is_built(base, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        known()["build"].run({"gpu": "cpu", "base": base, "dry_run": True})
    assert ended.value.code == 2
    assert "--base takes the name of an image" in capsys.readouterr().err


def test_evidence_of_an_unknown_user_ends_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["invoke"])
    with pytest.raises(SystemExit) as ended:
        known()["build"].run({"gpu": "cpu", "evidence": "~nosuchuser/evidence.db", "dry_run": True})
    assert ended.value.code == 2
    assert "RM404" in capsys.readouterr().err
