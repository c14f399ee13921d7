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
    assert instructions == {"FROM", "RUN", "ENV", "LABEL", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}


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


def places(config, **more):
    return [place for finding in check(config, **more).findings for place in finding.places]


def test_summary_counts_what_was_compared():
    config, _ = recipe(cells.CPU)
    expected = settings.expected(cells.CPU, None)
    found = check(config)
    assert (found.name, found.summary) == ("settings", f"{4 + 6 + len(expected)} settings, and the seal")
    assert len(expected) >= 5


def test_environment_is_the_bases_the_recipes_and_the_cells_own_in_this_order():
    base = {"Env": ["LANG=C.UTF-8", "HOME=/root", "EMPTY=", "PAIR=a=b"]}
    own = {variable.name: variable.value for variable in cells.GFX1100.environment}
    assert own
    assert settings.expected(cells.GFX1100, base) == {
        "LANG": "C.UTF-8",
        "EMPTY": "",
        "PAIR": "a=b",
        "PATH": f"/opt/venv/bin:{settings.DEFAULT_PATH}",
        "PYTHONPATH": "/opt/rocmatrix",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",
        **own,
    }
    with_path = settings.expected(cells.CPU, {"Env": ["PATH=/base/bin"]})
    assert with_path["PATH"] == "/opt/venv/bin:/base/bin"


@pytest.mark.parametrize("name", settings.NONE)
def test_setting_outside_the_recipe_is_the_bases_or_nothing(name):
    config, _ = recipe(cells.CPU)
    assert places({**config, name: ["x"]}) == [f"{name} is ['x']"]
    assert places({**config, name: ["x"]}, base={name: ["x"]}) == []
    assert places(config, base={name: ["x"]}) == [f"{name} is None"]
    for empty in ([], {}, "", None):
        assert places({**config, name: empty}) == places({**config}, base={name: empty}) == []


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("User", "0:0", "User is '0:0', not '10001:10001'"),
        ("Entrypoint", ["sh"], "Entrypoint is ['sh'], not ['python', '-P', '-m', 'trainer']"),
        ("Cmd", None, "Cmd is None, not ['--help']"),
        ("WorkingDir", "/", "WorkingDir is '/', not '/training'"),
    ],
)
def test_own_setting_of_another_value_is_named_with_both(name, value, place):
    config, _ = recipe(cells.CPU)
    assert places({**config, name: value}) == [place]


def test_variable_of_another_value_or_set_often_is_named_once():
    config, _ = recipe(cells.CPU)
    env = [pair.replace("HOME=/tmp", "HOME=/x") for pair in config["Env"]]
    assert places({**config, "Env": env}) == ["HOME=/x, not /tmp"]
    assert places({**config, "Env": [*config["Env"], "B=1", "A=1", "B=2", "A=1", "A=1"]}) == [
        *("A is set twice", "B is set twice", "B=2 is not the recipe's", "A=1 is not the recipe's"),
    ]


def test_image_without_settings_is_named_for_each():
    found = settings.check({"RootFS": {"Layers": []}, "Config": None}, cells.CPU, None)
    own, seal_ = found.findings
    assert own.code == seal_.code == "RM663"
    found = ("User is None, not '10001:10001'", "Entrypoint is None, not ['python', '-P', '-m', 'trainer']")
    assert own.places[:2] == found
    assert own.places[-1].endswith(" is not set")
    assert seal_.what.endswith("it was not made by `./invokew build`")


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ({}, []),
        ({"Os": "linux"}, []),
        ({"Architecture": "amd64"}, []),
        ({"Os": "windows"}, ["it is for windows/amd64"]),
        ({"Architecture": "arm64"}, ["it is for linux/arm64"]),
    ],
)
def test_platform_that_an_engine_leaves_out_is_the_recipes(platform, place):
    config, _ = recipe(cells.CPU)
    image = {"RootFS": {"Layers": ["a"]}, "Config": config, **platform}
    config["Labels"][label_integrity.LABEL] = label_integrity.of(image)
    assert [each for finding in settings.check(image, cells.CPU, None).findings for each in finding.places] == place


def test_value_that_holds_an_equals_sign_is_the_variables_own():
    config, _ = recipe(cells.CPU)
    config["Env"] = [*config["Env"], "PAIR=a=b"]
    assert places(config, base={"Env": ["PAIR=a=b"]}) == []
