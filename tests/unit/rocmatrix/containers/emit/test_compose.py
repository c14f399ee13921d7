"""A compose file carries every setting through YAML, and its portable form equals the reviewed one."""

from dataclasses import replace

import pytest
import yaml
from hypothesis import given

from rocmatrix.containers.emit.compose import MADE_FOR_HOST, RENDERED, compose_file
from rocmatrix.containers.emit.docker import docker_options
from rocmatrix.containers.runspec import RunSpec, portable_spec
from rocmatrix.containers.settings import Environment, HostText, Mount
from tests.fixtures import cells
from tests.fixtures.golden import assert_golden
from tests.fixtures.run_specs import WHY, common, example, mount_option, parsed, specs


def from_compose(document):
    """Return a compose file's service as options of `docker run`, written apart from the emitter."""
    service = document["services"]["train"]
    assert service.pop("pull_policy") == "never"
    reserved = service.pop("deploy", {"resources": {"reservations": {"devices": []}}})["resources"]["reservations"]
    cdi = [f"--device={device['device_ids'][0]}" for device in reserved["devices"] if device["driver"] == "cdi"]
    ulimits = [f"--ulimit={name}={u['soft']}:{u['hard']}" for name, u in service.pop("ulimits", {}).items()]
    tmpfs = [f"--tmpfs={entry}" for entry in service.pop("tmpfs", [])]
    mounts = []
    for volume in service.pop("volumes", []):
        origin = volume["source"] if volume["type"] == "bind" else document["volumes"][volume["source"]]["name"]
        mounts.append((volume["type"], origin, volume["target"], volume.get("read_only", False)))
    return cdi + ulimits + tmpfs + list(map(mount_option, mounts)) + common(service)


@given(specs())
def test_compose_carries_every_setting_through_yaml(spec):
    document = yaml.safe_load(compose_file(spec))
    found = [option.replace("$$", "$") for option in from_compose(document)]
    assert sorted(found) == sorted(map(parsed, docker_options(spec)))
    command = document["services"]["train"].get("command", [])
    assert [word.replace("$$", "$") for word in command] == list(spec.command)


@pytest.mark.parametrize("content", ["1e3", "0o17", "no", "~", "12:30:45", "$HOME", "", "a: b", "-x", "0x1F"])
def test_text_that_yaml_could_misread_stays_text(content):
    spec = RunSpec(cell="c", image="i", command=(), settings=(replace(example(Environment), content=content),))
    text = compose_file(spec)
    assert yaml.safe_load(text)["services"]["train"]["environment"]["A"] == content.replace("$", "$$")


@pytest.mark.parametrize(("name", "cell"), [("cpu", cells.CPU), ("gfx1100", cells.GFX1100)])
def test_portable_compose_file_equals_the_reviewed_one(name, cell):
    assert_golden(f"run/portable-{name}.compose.yaml", compose_file(portable_spec(cell)))


@pytest.mark.parametrize("cell", cells.MATRIX.cells, ids=lambda cell: cell.name)
def test_portable_file_of_a_card_demands_its_number_so_that_no_integrated_one_is_taken(cell):
    service = yaml.safe_load(compose_file(portable_spec(cell)))["services"]["train"]
    named = service["environment"].get("ROCR_VISIBLE_DEVICES", "")
    assert named.startswith("${ROCMATRIX_CARDS:?") == bool(cell.architecture)
    assert ("devices" in service) == bool(cell.architecture)


def spec_of(*settings, **fields):
    return RunSpec(**{"cell": "c", "image": "i", "command": ()} | fields, settings=settings)


def test_folder_that_is_missing_on_the_host_is_never_made_by_the_engine():
    mounts = [Mount(kind=kind, origin="/x", target="/a/b", read_only=False, **WHY) for kind in ("bind", "volume")]
    bind, volume = yaml.safe_load(compose_file(spec_of(*mounts)))["services"]["train"]["volumes"]
    assert bind == {"type": "bind", "source": "/x", "target": "/a/b", "bind": {"create_host_path": False}}
    assert volume == {"type": "volume", "source": "a-b", "target": "/a/b"}  # a bind option would refuse the file


def test_projects_name_holds_no_dots_and_the_service_is_named_by_the_caller():
    document = yaml.safe_load(compose_file(spec_of(cell="rocm7.2-torch2.12.1"), service="smoke"))
    assert document["name"] == "rocmatrix-rocm7-2-torch2-12-1"
    assert list(document["services"]) == ["smoke"]
    assert document["volumes"] == {}


def test_dollar_sign_is_a_variable_in_a_hosts_text_alone():
    settings = [Environment(name=name, content=text, **WHY) for name, text in (("A", "$X"), ("B", HostText("$X")))]
    service = yaml.safe_load(compose_file(spec_of(*settings, entrypoint="a$b")))["services"]["train"]
    assert service["environment"] == {"A": "$$X", "B": "$X"}
    assert service["entrypoint"] == ["a$$b"]
    assert "command" not in service


def test_passed_variable_is_demanded_even_where_it_is_empty():
    text = compose_file(spec_of(Environment(name="HF_TOKEN", content="", passed=True, **WHY)))
    assert yaml.safe_load(text)["services"]["train"]["environment"]["HF_TOKEN"].startswith("${HF_TOKEN?")


def test_head_states_whether_a_file_is_of_one_host():
    assert compose_file(spec_of()).startswith(MADE_FOR_HOST)
    assert compose_file(portable_spec(cells.CPU)).startswith(RENDERED)
