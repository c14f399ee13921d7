"""Settings of a run as fields of a pod: least privilege, and what no pod can have is refused."""

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.cluster.pod import fields_of, literal, pod_of
from rocmatrix.containers.emit.kubernetes_manifest import kubernetes_job
from rocmatrix.containers.runspec import RunSpec, portable_spec
from rocmatrix.containers.settings import Device, Environment, Group, Limit, Mount, SecurityOption, User
from tests.fixtures import cells
from tests.fixtures.pods import EMITTED, FULL, ONE, SITE, WHY, pod, spec

PLAIN = RunSpec(cell="c", image="i", command=(), settings=())


@EMITTED
def test_groups_are_those_that_were_named(emit, placement):
    pods = [pod(yaml.safe_load(emit(spec(groups=groups), placement))) for groups in ((992,), (44, 109), ())]
    assert [one["securityContext"].get("supplementalGroups") for one in pods] == [[992], [44, 109], None]


@EMITTED
def test_least_is_given(emit, placement):
    document = yaml.safe_load(emit(spec(), placement))
    whole, (container,) = pod(document), pod(document)["containers"]
    identity = {"runAsUser": 1000, "runAsGroup": 1001, "runAsNonRoot": True}
    assert identity.items() <= whole["securityContext"].items()
    assert whole["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    shared = next(volume for volume in whole["volumes"] if volume["name"] == "dev-shm")
    assert shared["emptyDir"] == {"medium": "Memory", "sizeLimit": str(8 * 1024**3)}
    assert {"name": "dev-shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & whole.keys()
    assert not any("hostPath" in volume for volume in whole["volumes"])


@EMITTED
@pytest.mark.parametrize(("site", "claim"), [(FULL, "sets"), (SITE, "runs")])
def test_data_is_read_from_a_claim(emit, placement, site, claim):
    whole = pod(yaml.safe_load(emit(spec(data="bars/2025.csv"), replace(placement, site=site))))
    (volume,) = [one for one in whole["volumes"] if one["name"] == "data"]
    (mount,) = [one for one in whole["containers"][0]["volumeMounts"] if one["name"] == "data"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim}
    assert mount == {"name": "data", "mountPath": "/data/2025.csv", "subPath": "bars/2025.csv", "readOnly": True}


@pytest.mark.parametrize(
    "setting",
    [
        Limit(name="memlock", soft=-1, hard=-1, **WHY),
        Device(host="/dev/dri/renderD128", container="/dev/dri/renderD128", **WHY),
        Device(host="/dev/infiniband/uverbs0", container="/dev/infiniband/uverbs0", **WHY),
        SecurityOption(value="label=disable", **WHY),
    ],
)
def test_setting_that_a_pod_cannot_have_is_refused(setting):
    run_spec = spec()
    with pytest.raises(ValueError, match=setting.flag):
        kubernetes_job(replace(run_spec, settings=(*run_spec.settings, setting)), ONE)


def test_file_of_this_host_is_refused():
    with pytest.raises(ValueError, match=r"/srv/bars\.csv"):
        kubernetes_job(spec(data="/srv/bars.csv"), ONE)


@given(content=st.text(st.characters(exclude_categories=["C"]), max_size=20), gid=st.integers(1, 2**31 - 1))
def test_text_and_groups_of_any_kind_survive(content, gid):
    settings = (Environment(name="A", content=content, **WHY), Group(gid=gid, **WHY))
    run_spec = replace(PLAIN, settings=settings, command=("train", content))
    (container,) = pod(document := yaml.safe_load(kubernetes_job(run_spec, ONE)))["containers"]
    assert expanded(container["env"][0]["value"]) == content
    assert expanded(container["args"][1]) == content
    assert pod(document)["securityContext"]["supplementalGroups"] == [gid]


def expanded(text):
    """Read `text` as the kubelet does where no variable is known: `$$` is a dollar sign, `$(` a reference to none."""
    assert "$(" not in text.replace("$$", "")
    return text.replace("$$", "$")


def test_portable_spec_is_refused_by_a_pod():
    with pytest.raises(ValueError, match="portable"):
        pod_of(portable_spec(cells.CPU), SITE)


@pytest.mark.parametrize(("value", "other"), [("1000:1001", True), ("0:0", False), ("1:0", True)])
def test_pod_states_that_its_user_is_not_root_unless_it_is(value, other):
    identity = fields_of(User(value=value, **WHY), SITE)["pod"]["securityContext"]
    assert identity["runAsNonRoot"] is other
    assert (f"{identity['runAsUser']}:{identity['runAsGroup']}", identity["fsGroup"]) == (value, identity["runAsGroup"])


@pytest.mark.parametrize("value", ["no-new-privileges", "no-new-privileges:true"])
def test_security_options_a_pod_has_are_its_own_fields(value):
    fields = fields_of(SecurityOption(value=value, **WHY), SITE)
    assert fields == {"container": {"securityContext": {"allowPrivilegeEscalation": False}}}
    lifted = pod_of(replace(PLAIN, settings=(SecurityOption(value="seccomp=unconfined", **WHY),)), SITE)
    assert lifted.spec["securityContext"]["seccompProfile"] == {"type": "Unconfined"}
    assert lifted.container["securityContext"] == {"privileged": False}


def mount(target, origin="sets/a.csv", kind="bind"):
    return Mount(kind=kind, origin=origin, target=target, read_only=True, **WHY)


def test_two_files_of_one_claim_share_its_volume():
    made = pod_of(replace(PLAIN, settings=(mount("/data/a.csv"), mount("/data/b.csv", "b.csv"))), FULL)
    assert made.spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "sets"}}]
    assert [each["subPath"] for each in made.container["volumeMounts"]] == ["sets/a.csv", "b.csv"]


@pytest.mark.parametrize("refused", [mount("/data/a.csv", "/srv/a.csv"), mount("/recipe/a.yaml"), mount("/database/a")])
def test_mount_of_a_nodes_own_file_is_refused(refused):
    with pytest.raises(ValueError, match="a node need not have it"):
        fields_of(refused, SITE)


def test_run_folder_is_the_claim_and_a_cache_is_the_pods_own():
    run, cache = (
        fields_of(each, SITE)["pod"]["volumes"] for each in (mount("/training"), mount("/cache", "c", "volume"))
    )
    assert run == [{"name": "training", "persistentVolumeClaim": {"claimName": "runs"}}]
    assert cache == [{"name": "cache", "emptyDir": {}}]


def test_dollar_signs_are_doubled_for_the_kubelet():
    assert literal("$(HOME) $$ a") == "$$(HOME) $$$$ a"
