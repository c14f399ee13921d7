"""What the cell's recipe sets is what is asked of an image: read from the rendered Dockerfiles themselves."""

import json
import re
from pathlib import Path

import pytest

from rocmatrix.containers import label_integrity
from rocmatrix.verify import settings
from tests.fixtures import cells

ROOT = Path(__file__).resolve().parents[4]
CELLS = list(cells.MATRIX.cells)


def recipe(cell):
    """Return what a rendered Dockerfile sets, read as BuildKit does: with the lines of one instruction joined."""
    text = (ROOT / "images" / cell.name / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    last = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}
    env = [pair for line in lines if line.startswith("ENV ") for pair in re.findall(r"([A-Z_]+)=(\S+)", line)]
    return {
        "User": last["USER"],
        "WorkingDir": last["WORKDIR"],
        "Entrypoint": json.loads(last["ENTRYPOINT"]),
        "Cmd": json.loads(last["CMD"]),
        "Env": [f"{name}={value.replace('$PATH', settings.DEFAULT_PATH)}" for name, value in env],
        "Labels": {},
    }, {line.split(" ", 1)[0] for line in lines}


def check(config, cell=cells.CPU, base=None):
    image = {"RootFS": {"Layers": ["a"]}, "Config": config}
    config["Labels"] = {**(config.get("Labels") or {})}
    config["Labels"][label_integrity.LABEL] = label_integrity.of(image)
    return settings.check(image, cell, base)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_settings_of_a_recipe_pass_and_no_others(cell):
    config, instructions = recipe(cell)
    assert check(config, cell).findings == ()
    assert instructions == {"FROM", "RUN", "ENV", "LABEL", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}


def test_layers_are_as_many_as_the_recipe_makes():
    from rocmatrix.verify.files import system

    for cell in CELLS:
        text = (ROOT / "images" / cell.name / "Dockerfile").read_text()
        runtime = text.partition("FROM base AS runtime")[2]
        assert len(re.findall(r"^(RUN|COPY|WORKDIR) ", runtime, re.MULTILINE)) == system.LAYERS


@pytest.mark.parametrize("missing", ["User", "Entrypoint", "Cmd", "WorkingDir"])
def test_missing_setting_is_named(missing):
    config, _ = recipe(cells.CPU)
    del config[missing]
    (finding,) = check(config).findings
    assert (finding.code, finding.places[0].startswith(f"{missing} is None")) == ("RM663", True)


@pytest.mark.parametrize(
    ("env", "place"),
    [
        (["LD_LIBRARY_PATH=/x"], "LD_LIBRARY_PATH=/x is not the recipe's"),
        (["HOME=/tmp"], "HOME is set twice"),
        (["PYTHONSTARTUP"], "PYTHONSTARTUP= is not the recipe's"),
    ],
)
def test_variables_more_than_the_recipes_are_named(env, place):
    config, _ = recipe(cells.CPU)
    config["Env"] = [*config["Env"], *env]
    (finding,) = check(config).findings
    assert place in finding.places


def test_variable_that_is_missing_is_named():
    config, _ = recipe(cells.CPU)
    config["Env"] = [pair for pair in config["Env"] if not pair.startswith("PYTHONPATH=")]
    (finding,) = check(config).findings
    assert finding.places == ("PYTHONPATH is not set",)


def test_inherited_settings_are_those_of_the_base_only():
    base = {"Env": ["PATH=/base/bin", "LANG=C.UTF-8"], "Volumes": {"/data": {}}}
    config, _ = recipe(cells.CPU)
    config["Env"] = [pair for pair in config["Env"] if not pair.startswith("PATH=")]
    config["Env"] += ["PATH=/opt/venv/bin:/base/bin", "LANG=C.UTF-8"]
    config["Volumes"] = {"/data": {}}
    assert check(config, base=base).findings == ()
    assert check(config).findings != ()


def test_seal_that_does_not_fit_is_named():
    config, _ = recipe(cells.CPU)
    image = {"RootFS": {"Layers": ["a"]}, "Config": config}
    (finding,) = settings.check(image, cells.CPU, None).findings
    assert (finding.code, finding.places, "not made by" in finding.what) == ("RM663", (label_integrity.LABEL,), True)
    config["Labels"][label_integrity.LABEL] = "0" * 64
    (finding,) = settings.check(image, cells.CPU, None).findings
    assert "derived from" in finding.what


def test_image_for_another_platform_is_named():
    config, _ = recipe(cells.CPU)
    image = {"RootFS": {"Layers": ["a"]}, "Config": config, "Os": "linux", "Architecture": "arm64"}
    config["Labels"][label_integrity.LABEL] = label_integrity.of(image)
    (finding,) = settings.check(image, cells.CPU, None).findings
    assert finding.places == ("it is for linux/arm64",)
