"""A CDI specification names each card once, with the host's owners; a run that uses it names no node."""

import json
from pathlib import Path

import pytest

from rocmatrix.containers.emit import cdi, docker_run_argv
from rocmatrix.containers.settings import CdiDevice, Device, Group
from rocmatrix.host.hardware import read_hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import sysfs

DEBIAN_SCHEMA = Path("usr/share/gocode/src/tags.cncf.io/container-device-interface/schema")
SCHEMA = Path(__file__).resolve().parents[5] / ".rocmatrix" / "ci" / "cdi" / DEBIAN_SCHEMA


def nodes(specification, name):
    (device,) = [device for device in specification["devices"] if device["name"] == name]
    return device["containerEdits"]["deviceNodes"]


def test_cards_have_their_node_and_the_interface_that_all_share(two_cards):
    hardware, _ = two_cards(gid=109)
    made = cdi.specification(hardware)
    assert (made["cdiVersion"], made["kind"]) == ("0.5.0", "amd.com/gpu")
    assert [device["name"] for device in made["devices"]] == ["0", "1", "all"]
    assert [node["path"] for node in nodes(made, "1")] == ["/dev/kfd", "/dev/dri/renderD129"]
    assert [node["path"] for node in nodes(made, "all")] == ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"]
    assert {(node["uid"], node["gid"], node["fileMode"]) for node in nodes(made, "all")} == {(0, 109, 0o660)}


def test_device_numbers_are_left_out_since_they_differ_between_boots(two_cards):
    assert not {"major", "minor"} & {key for node in nodes(cdi.specification(two_cards()[0]), "all") for key in node}


def test_run_by_name_names_cards_and_keeps_the_numeric_group(two_cards):
    hardware, spec = two_cards(cards=[1])
    named = cdi.by_name(spec, hardware)
    assert [row.value for row in named.of(CdiDevice)] == ["amd.com/gpu=1"]
    assert (named.of(Device), [row.gid for row in named.of(Group)]) == ((), [992])
    assert "--device=amd.com/gpu=1" in docker_run_argv(named)


def test_other_devices_stay_as_they_were(two_cards):
    adapter = DeviceNode(path="/dev/infiniband/uverbs0", uid=0, gid=0, mode=0o666)
    hardware, spec = two_cards(features=["rdma"], rdma=[adapter])
    assert [row.host for row in cdi.by_name(spec, hardware).of(Device)] == [adapter.path]


@pytest.mark.parametrize(("machine", "code"), [(sysfs.no_driver, "RM301"), (sysfs.wsl2, "RM301")])
def test_empty_request_is_an_error(tmp_path, machine, code):
    with pytest.raises(RocmatrixError, match=code):
        cdi.cdi_file(read_hardware(machine(tmp_path)))


def test_card_without_its_node_is_an_error(tmp_path):
    machine = sysfs.mi50(tmp_path)
    (machine.root / "dev/kfd").unlink()
    with pytest.raises(RocmatrixError, match="RM302"):
        cdi.cdi_file(read_hardware(machine))


@pytest.mark.parametrize(
    ("name", "content"), [("amd.json", '{"kind": "amd.com/gpu"}'), ("a.yaml", "kind: amd.com/gpu")]
)
def test_second_file_of_the_kind_is_refused_by_name(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(RocmatrixError, match=name):
        cdi.conflict(tmp_path / "rocmatrix.json", [tmp_path])


def test_own_file_other_kinds_and_broken_files_are_no_conflict(tmp_path):
    (tmp_path / "rocmatrix.json").write_text('{"kind": "amd.com/gpu"}')
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "amd.json.bak").write_text('{"kind": "amd.com/gpu"}')
    cdi.conflict(tmp_path / "rocmatrix.json", [tmp_path, tmp_path / "absent"])


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    referencing, draft = pytest.importorskip("referencing"), pytest.importorskip("referencing.jsonschema")
    if not (SCHEMA / "schema.json").is_file():
        pytest.skip("CDI's schema is not here: .ci/targets takes it from Debian's package of CDI")
    whole, parts = (json.loads((SCHEMA / name).read_text()) for name in ("schema.json", "defs.json"))
    registry = referencing.Registry().with_resource("defs.json", draft.DRAFT7.create_resource(parts))
    return jsonschema.Draft7Validator(whole, registry=registry)


def test_published_schema_takes_it(validator, two_cards):
    made = cdi.specification(two_cards()[0])
    validator.validate(made)
    made["devices"][0]["containerEdits"]["deviceNodes"][0]["uid"] = -1
    assert not validator.is_valid(made)
