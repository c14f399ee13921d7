"""A Job and a TrainJob of one run spec: as looked at, as the published schemas have it, and nothing left unsaid."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.kubernetes import Placement, kubernetes_job, kubernetes_rows, train_job
from rocmatrix.containers.runspec import RunSpec, run_spec
from rocmatrix.containers.settings import Device, Environment, Group, Ipc, Limit, SecurityOption
from rocmatrix.host.hardware import survey
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden

WHY = {"reason": "r", "source": "s"}
ONE = Placement(name="run-1", claim="runs")
TWO = Placement(name="run-1", claim="runs", nodes=2, processes=2, namespace="team")
PLAIN = RunSpec(cell="c", image="i", command=(), settings=())
OLDEST, NEWEST = "1.29", "1.37"  # before 1.29 the schemas ask every failure rule for pod conditions: a defect of theirs


def spec(tmp_path, machine=sysfs.two_rx_7900_xt, cell=cells.GFX1100, user="1000:1001", **choices):
    return run_spec(
        cell,
        survey(machine(tmp_path / "machine")),
        image=f"registry.example/rocmatrix:{cell.name}",
        command=("train", "--output=/training", "--run=run-1"),
        run_folder=Path("/training"),
        user=user,
        features=("network",),
        **choices,
    )


def pod(document):
    """Return the pod of a Job or the one that a TrainJob's patch describes."""
    if document["kind"] == "Job":
        return document["spec"]["template"]["spec"]
    patch = document["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    return patch["template"]["spec"]["template"]["spec"]


EMITTED = pytest.mark.parametrize(("emit", "placement"), [(kubernetes_job, ONE), (train_job, TWO)], ids=["job", "two"])


@EMITTED
@pytest.mark.parametrize(
    ("machine", "cell", "host"),
    [
        (sysfs.two_rx_7900_xt, cells.GFX1100, "two-rx-7900-xt"),
        (sysfs.mi50, cells.GFX906, "mi50"),
        (sysfs.no_driver, cells.CPU, "cpu"),
    ],
)
def test_what_is_emitted_is_what_was_looked_at(tmp_path, emit, placement, machine, cell, host):
    text = emit(spec(tmp_path, machine, cell), placement)
    assert_golden(f"cluster/{host}.{emit.__name__.replace('_', '-')}.yaml", text)


@EMITTED
def test_hosts_with_other_groups_get_other_numbers(tmp_path, emit, placement):
    hosts = [(sysfs.two_rx_7900_xt, cells.GFX1100), (sysfs.mi50, cells.GFX906)]
    said = [pod(yaml.safe_load(emit(spec(tmp_path / str(i), *host), placement))) for i, host in enumerate(hosts)]
    assert [one["securityContext"]["supplementalGroups"] for one in said] == [[992], [44, 109]]


@EMITTED
def test_the_least_is_given(tmp_path, emit, placement):
    document = yaml.safe_load(emit(spec(tmp_path), placement))
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


def test_cards_are_counted_and_a_cpu_cell_asks_for_none(tmp_path):
    def limits(cell, machine, folder):
        (container,) = pod(yaml.safe_load(kubernetes_job(spec(tmp_path / folder, machine, cell), ONE)))["containers"]
        return container.get("resources")

    assert limits(cells.GFX1100, sysfs.two_rx_7900_xt, "a") == {"limits": {"amd.com/gpu": "2"}}
    assert limits(cells.GFX1100, sysfs.desktop_with_igpu, "b") == {"limits": {"amd.com/gpu": "1"}}
    assert limits(cells.CPU, sysfs.no_driver, "c") is None


def test_several_processes_on_one_node_are_started_by_torchrun(tmp_path):
    (container,) = pod(yaml.safe_load(kubernetes_job(spec(tmp_path), replace(ONE, processes=2))))["containers"]
    torchrun = ["python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "--", "trainer"]
    assert container["command"] == torchrun
    (alone,) = pod(yaml.safe_load(kubernetes_job(spec(tmp_path), ONE)))["containers"]
    assert "command" not in alone  # the image's own program


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_follows_the_published_schema(tmp_path, version, processes):
    validator = pytest.importorskip("kubernetes_validate", reason="the schemas come with requirements/dev.txt")
    document = yaml.safe_load(kubernetes_job(spec(tmp_path), replace(ONE, processes=processes)))
    validator.validate(document, version, strict=True)
    document["spec"]["template"]["spec"]["supplementalGroups"] = [1]  # where it does not belong
    with pytest.raises(validator.ValidationError, match="supplementalGroups"):
        validator.validate(document, version, strict=True)


def test_a_train_job_follows_the_published_models(tmp_path):
    models = pytest.importorskip("kubeflow_trainer_api.models", reason="the models come with requirements/dev.txt")

    def read_back(document):
        return models.TrainerV1alpha1TrainJob.from_dict(document).to_dict()

    document = yaml.safe_load(train_job(spec(tmp_path), TWO))
    assert read_back(document) == document  # what the models do not know is lost on the way
    document["spec"]["trainer"]["gpus"] = 2
    assert read_back(document) != document
    document["spec"]["trainer"] = {"numNodes": "two"}
    with pytest.raises(ValueError, match="numNodes"):
        read_back(document)


@pytest.mark.parametrize(
    "setting",
    [
        Limit(name="memlock", soft=-1, hard=-1, **WHY),
        Device(host="/dev/infiniband/uverbs0", container="/dev/infiniband/uverbs0", **WHY),
        SecurityOption(value="label=disable", **WHY),
    ],
)
def test_what_a_pod_cannot_have_is_refused(tmp_path, setting):
    asked = spec(tmp_path)
    with pytest.raises(ValueError, match=setting.flag):
        kubernetes_job(replace(asked, settings=(*asked.settings, setting)), ONE)


def test_a_file_of_this_host_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"/srv/bars\.csv"):
        kubernetes_job(spec(tmp_path, data=Path("/srv/bars.csv")), ONE)


def test_shared_memory_of_the_node_is_for_a_job_alone(tmp_path):
    asked = spec(tmp_path)
    asked = replace(asked, settings=(*asked.settings, Ipc(value="host", **WHY)))
    assert pod(yaml.safe_load(kubernetes_job(asked, ONE)))["hostIPC"] is True
    with pytest.raises(ValueError, match="--ipc=host"):
        train_job(asked, TWO)


@pytest.mark.parametrize("name", ["", "Run", "1run", "run_1", "run-", "r" * 64])
def test_a_name_that_no_cluster_takes_is_refused(name):
    with pytest.raises(ValueError, match="RFC 1035"):
        Placement(name=name, claim="c")


@given(content=st.text(st.characters(exclude_categories=["C"]), max_size=20), gid=st.integers(1, 2**31 - 1))
def test_any_text_and_any_group_survive(content, gid):
    settings = (Environment(name="A", content=content, **WHY), Group(gid=gid, **WHY))
    asked = replace(PLAIN, settings=settings, command=("train", content))
    (container,) = pod(document := yaml.safe_load(kubernetes_job(asked, ONE)))["containers"]
    assert expanded(container["env"][0]["value"]) == content
    assert expanded(container["args"][1]) == content
    assert pod(document)["securityContext"]["supplementalGroups"] == [gid]


def expanded(text):
    """Read `text` as the kubelet does where no variable is known: `$$` is a dollar sign, `$(` a reference to none."""
    assert "$(" not in text.replace("$$", "")
    return text.replace("$$", "$")


def test_every_setting_is_explained_field_by_field(tmp_path):
    asked = spec(tmp_path)
    rows = kubernetes_rows(asked, ONE)
    assert {row.reason for row in rows} == {setting.reason for setting in asked.settings}
    told = {row.flag: row.value for row in rows}
    assert told["pod.securityContext.supplementalGroups"] == "[992]"
    assert told["container.securityContext.allowPrivilegeEscalation"] == "false"
    assert told["container.resources.limits"] == "amd.com/gpu"
    assert (told["--network"], told["--init"]) == (None, None)  # no field says these
