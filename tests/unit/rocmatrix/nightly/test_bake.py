"""The bake file names every cell once with all that its Dockerfile asks for."""

import json
from pathlib import Path

import pytest

from rocmatrix.images import build
from rocmatrix.nightly import bake
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells

ROOT = Path(__file__).resolve().parents[4]
CHOSEN = [cells.CPU, cells.GFX1100, cells.GFX906]
FOLDERS = {cell.name: Path("/wheels") / cell.release.name for cell in CHOSEN}


def made(chosen=CHOSEN, **more):
    return bake.bake_file(chosen, root=ROOT, wheelhouses=FOLDERS, night="n1", **more)


def test_cells_are_each_a_target_with_its_inputs_and_its_tag():
    content = made()
    names = content["group"]["default"]["targets"]
    assert len(names) == len(CHOSEN)
    for cell, name in zip(CHOSEN, names, strict=True):
        target = content["target"][name]
        assert "." not in name
        assert target["tags"] == [f"rocmatrix:night-{cell.name}"] != [build.tag(cell)]
        assert target["labels"][build.INPUTS_LABEL] == build.input_hash(cell, ROOT)
        assert Path(target["context"], "Dockerfile").is_file()


def test_contexts_are_those_of_a_build():
    """What `./invokew build` hands over, stage by stage."""
    for cell in CHOSEN:
        argv = build.buildx_argv(cell, root=ROOT, wheelhouse=FOLDERS[cell.name], inputs="x", base="mirror/base:1")
        given = dict(argv[i + 1].split("=", 1) for i, word in enumerate(argv) if word == "--build-context")
        assert made([cell], base="mirror/base:1")["target"][bake.target(cell)]["contexts"] == given


def test_images_of_a_night_are_dated_as_those_of_a_build():
    content = made([cells.CPU])
    argv = build.buildx_argv(cells.CPU, root=ROOT, wheelhouse=Path("/w"), inputs="x")
    (dated,) = [argv[i + 1] for i, word in enumerate(argv) if word == "--build-arg"]
    assert [f"{name}={value}" for name, value in content["target"][bake.COMMON]["args"].items()] == [dated]


def test_names_that_are_one_to_buildx_are_refused():
    other = cells.GFX1100.model_copy(update={"name": cells.GFX1100.name.replace(".", "_")})
    with pytest.raises(RocmatrixError) as caught:
        bake.bake_file([cells.GFX1100, other], root=ROOT, wheelhouses={}, night="n")
    assert caught.value.code == "RM631"


def test_file_is_json(tmp_path):
    bake.write(tmp_path / "new" / "night.json", made())
    assert json.loads((tmp_path / "new" / "night.json").read_text()) == made()
