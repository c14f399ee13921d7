"""devcontainer.json is valid JSON once its comments are taken out, and says why beside each argument."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.devcontainer import (
    Commented,
    devcontainer_json,
    devcontainer_rows,
    document,
    written,
)
from rocmatrix.containers.runspec import portable_spec
from rocmatrix.containers.settings import Mount
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells
from tests.fixtures.commented_json import without_comments

# Its licence keeps it out of the checkout, and no registry of packages holds it.
SCHEMA = os.environ.get("ROCMATRIX_DEVCONTAINER_SCHEMA", "")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def made(spec):
    return json.loads(without_comments(devcontainer_json(spec)))


def test_devices_and_groups_are_arguments_and_groups_are_numbers(two_cards):
    _, spec = two_cards(gid=109, features=["network"])
    arguments = made(spec)["runArgs"]
    assert {"--device=/dev/kfd:/dev/kfd:rw", "--group-add=109", "--cap-drop=ALL"} <= set(arguments)
    assert [a for a in arguments if a.startswith("--group-add")] == ["--group-add=109"]
    assert not [a for a in arguments if a.startswith(("--privileged", "--read-only", "--tmpfs", "--user", "--mount"))]


def test_user_has_the_hosts_numbers_and_the_image_is_the_cells(two_cards):
    _, spec = two_cards(user="1234:567")
    document = made(spec)
    assert document["build"]["args"] == {
        "CELL_IMAGE": spec.image,
        "DEVELOPER_NAME": "developer",
        "DEVELOPER_UID": "1234",
        "DEVELOPER_GID": "567",
    }
    assert (document["remoteUser"], document["updateRemoteUserUID"]) == ("developer", False)


def test_run_folder_is_not_mounted_but_caches_are(two_cards):
    mounts = made(two_cards()[1])["mounts"]
    assert [mount.partition("target=")[2] for mount in mounts] == ["/cache", "/home/developer/.cache/pip"]


def test_edited_trainer_comes_before_the_one_in_the_image(two_cards):
    environment = made(two_cards()[1])["containerEnv"]
    assert environment["PYTHONPATH"].split(":") == ["${containerWorkspaceFolder}", "/opt/rocmatrix"]
    assert not {"HOME", "USER"} & set(environment)
    assert environment["TRITON_CACHE_DIR"] == "/cache/triton"


def test_command_runs_once_the_container_is_made(two_cards):
    _, spec = two_cards(entrypoint="python", command=["-m", "trainer", "smoke"])
    assert made(spec)["postCreateCommand"] == ["python", "-m", "trainer", "smoke"]


def test_arguments_have_their_reason_on_the_line_before(two_cards):
    lines = [line.strip() for line in devcontainer_json(two_cards()[1]).splitlines()]
    arguments = [index for index, line in enumerate(lines) if line.startswith('"--')]
    assert arguments
    assert all(lines[index - 1].startswith("// ") for index in arguments)


def test_omitted_settings_are_explained(two_cards):
    rows = devcontainer_rows(two_cards()[1])
    assert all(row.reason.strip() and row.source.strip() for row in rows)
    assert "hostRequirements.gpu" in [row.flag for row in rows if row.value is None]


def test_portable_spec_is_refused():
    with pytest.raises(ValueError, match="compose variables"):
        devcontainer_json(portable_spec(cells.GFX1100))


@given(JSON)
def test_emitted_text_is_json(value):
    assert json.loads(written(value)) == value


@given(st.lists(JSON, min_size=1, max_size=3))
def test_notes_change_nothing(values):
    noted = [Commented(note="why", value=value) for value in values]
    assert json.loads(without_comments(written(noted))) == values


@pytest.mark.skipif(not SCHEMA, reason="ROCMATRIX_DEVCONTAINER_SCHEMA names no devContainer.base.schema.json")
def test_published_schema_takes_it(two_cards):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft201909Validator(json.loads(Path(SCHEMA).read_text(encoding="utf-8")))
    document = made(two_cards()[1])
    validator.validate(document)
    assert not validator.is_valid(document | {"runArg": []})


def spec_with(two_cards, *, command=("smoke",), origin="/srv/x", read_only=True):
    mount = Mount(kind="bind", origin=origin, target="/code", read_only=read_only, reason="r", source="s")
    return two_cards(command=[*command], more=(mount,))[1]


@pytest.mark.parametrize(
    "text",
    ["${localEnv:HOME}", "a${env:X}", "${containerWorkspaceFolder}", "${localHomeFolder}", "${devcontainerId}"],
)
def test_text_that_an_editor_would_replace_is_refused(two_cards, text):
    for spec in (spec_with(two_cards, command=["p", text]), spec_with(two_cards, origin=f"/srv/{text}")):
        with pytest.raises(RocmatrixError, match="RM414"):
            devcontainer_json(spec)


def test_other_text_in_braces_stays_as_it_is(two_cards):
    words = ["p", "${HOME}", "${X:-y}", "$(id)", "${localEnvironment}"]
    assert document(spec_with(two_cards, command=words))["postCreateCommand"].value[-len(words) :] == words


def test_folder_that_may_be_changed_is_mounted_and_results_are_the_workspaces(two_cards):
    mounts = [mount.value for mount in document(spec_with(two_cards, read_only=False))["mounts"]]
    assert "type=bind,source=/srv/x,target=/code" in mounts
    assert not any("target=/training" in mount for mount in mounts)
