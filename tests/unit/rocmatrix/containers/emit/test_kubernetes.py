"""A Job and a TrainJob of one run spec: as looked at, as the published schemas have it, and nothing left unsaid."""

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.kubernetes import Placement, kubernetes_job, kubernetes_rows, train_job
from rocmatrix.containers.portable_spec import Places, elsewhere_spec
from rocmatrix.containers.runspec import RunSpec
from rocmatrix.containers.settings import Device, Environment, Group, Ipc, Limit, SecurityOption
from tests.fixtures import cells
from tests.fixtures.golden import assert_golden

WHY = {"reason": "r", "source": "s"}
SITE = Site(claim="runs")
ONE = Placement(name="run-1", site=SITE, cards=2)
TWO = Placement(name="run-1", site=replace(SITE, namespace="team"), nodes=2, processes=2, cards=2)
FULL = Site(
    claim="runs", data_claim="sets", pull_secrets=("hub",), node_selector={"gpu": "mi300x"}, queue="team-a",
    tolerations=("amd.com/gpu:NoSchedule", "team=x", "any=:NoExecute"), cpu="16", memory="64Gi",
    card="amd.com/cpx_nps4", rdma="rdma/hca",
)  # fmt: skip
PLAIN = RunSpec(cell="c", image="i", command=(), settings=())
OLDEST, NEWEST = "1.29", "1.37"  # before 1.29 the schemas ask every failure rule for pod conditions: a defect of theirs


def spec(cell=cells.GFX1100, user="1000:1001", groups=(992,), data=None):
    target = f"/data/{data.rpartition('/')[2]}" if data else None
    return elsewhere_spec(
        cell,
        image=f"registry.example/rocmatrix:{cell.name}",
        command=("train", "--output=/training", "--run=run-1"),
        places=Places(results="/training", data=data, data_target=target),
        user=user,
        groups=groups,
        nodes=2,
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
    ("cell", "cards", "groups", "host"),
    [
        (cells.GFX1100, 2, (992,), "two-rx-7900-xt"),
        (cells.GFX906, 1, (44, 109), "mi50"),
        (cells.CPU, 0, (), "cpu"),
    ],
)
def test_emitted_job_equals_the_reviewed_text(emit, placement, cell, cards, groups, host):
    text = emit(spec(cell, groups=groups), replace(placement, cards=cards))
    assert_golden(f"cluster/{host}.{emit.__name__.replace('_', '-')}.yaml", text)


@EMITTED
def test_site_settings_equal_the_reviewed_text(emit, placement):
    asked = replace(placement, site=FULL)
    assert_golden(f"cluster/site.{emit.__name__.replace('_', '-')}.yaml", emit(spec(data="bars/2025.csv"), asked))


@EMITTED
def test_groups_are_those_that_were_named(emit, placement):
    said = [pod(yaml.safe_load(emit(spec(groups=groups), placement))) for groups in ((992,), (44, 109), ())]
    assert [one["securityContext"].get("supplementalGroups") for one in said] == [[992], [44, 109], None]


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


def test_cards_are_counted_and_a_cpu_cell_asks_for_none():
    def limits(placement):
        (container,) = pod(yaml.safe_load(kubernetes_job(spec(), placement)))["containers"]
        return container.get("resources")

    assert limits(ONE) == {"limits": {"amd.com/gpu": "2"}}
    assert limits(replace(ONE, cards=1)) == {"limits": {"amd.com/gpu": "1"}}
    assert limits(replace(ONE, cards=0)) is None
    assert limits(replace(ONE, cards=8, site=FULL)) == {
        "requests": {"cpu": "16", "memory": "64Gi"},
        "limits": {"amd.com/cpx_nps4": "8", "rdma/hca": "1"},
    }


@EMITTED
def test_site_decides_where_pods_may_run(emit, placement):
    document = yaml.safe_load(emit(spec(), replace(placement, site=FULL)))
    whole = pod(document)
    assert document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert (whole["imagePullSecrets"], whole["nodeSelector"]) == ([{"name": "hub"}], {"gpu": "mi300x"})
    assert whole["tolerations"] == [
        {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "x"},
        {"key": "any", "operator": "Equal", "value": "", "effect": "NoExecute"},
    ]


@EMITTED
@pytest.mark.parametrize(("site", "claim"), [(FULL, "sets"), (SITE, "runs")])
def test_data_is_read_from_a_claim(emit, placement, site, claim):
    whole = pod(yaml.safe_load(emit(spec(data="bars/2025.csv"), replace(placement, site=site))))
    (volume,) = [one for one in whole["volumes"] if one["name"] == "data"]
    (mount,) = [one for one in whole["containers"][0]["volumeMounts"] if one["name"] == "data"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim}
    assert mount == {"name": "data", "mountPath": "/data/2025.csv", "subPath": "bars/2025.csv", "readOnly": True}


@pytest.mark.parametrize(
    "wrong",
    [
        {"claim": "Runs"},
        {"pull_secrets": ("a b",)},
        {"node_selector": {"a": "b c"}},
        {"node_selector": {"": "b"}},
        {"tolerations": ("a:Never",)},
        {"cpu": "many"},
        {"memory": "64GB"},
        {"card": "amd.com/"},
        {"queue": "a/b"},
    ],
)
def test_name_that_the_interface_would_refuse_is_refused(wrong):
    with pytest.raises(ValueError, match="is not"):
        Site(**wrong)


def test_several_processes_on_one_node_are_started_by_torchrun():
    (container,) = pod(yaml.safe_load(kubernetes_job(spec(), replace(ONE, processes=2))))["containers"]
    torchrun = [
        "python",
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--local-addr=127.0.0.1",
        "--nproc-per-node=2",
        "-m",
        "--",
        "trainer",
    ]
    assert container["command"] == torchrun
    (alone,) = pod(yaml.safe_load(kubernetes_job(spec(), ONE)))["containers"]
    assert "command" not in alone  # the image's own program


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("site", [SITE, FULL])
def test_job_follows_the_published_schema(version, processes, site):
    validator = pytest.importorskip("kubernetes_validate", reason="the schemas come with requirements/dev.txt")
    document = yaml.safe_load(kubernetes_job(spec(data="a/b"), replace(ONE, processes=processes, site=site)))
    validator.validate(document, version, strict=True)
    document["spec"]["template"]["spec"]["supplementalGroups"] = [1]  # where it does not belong
    with pytest.raises(validator.ValidationError, match="supplementalGroups"):
        validator.validate(document, version, strict=True)


@pytest.mark.parametrize("site", [TWO.site, FULL])
def test_train_job_follows_the_published_models(site):
    models = pytest.importorskip("kubeflow_trainer_api.models", reason="the models come with requirements/dev.txt")

    def read_back(document):
        return models.TrainerV1alpha1TrainJob.from_dict(document).to_dict()

    document = yaml.safe_load(train_job(spec(data="a/b"), replace(TWO, site=site)))
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
        Device(host="/dev/dri/renderD128", container="/dev/dri/renderD128", **WHY),
        Device(host="/dev/infiniband/uverbs0", container="/dev/infiniband/uverbs0", **WHY),
        SecurityOption(value="label=disable", **WHY),
    ],
)
def test_setting_that_a_pod_cannot_have_is_refused(setting):
    asked = spec()
    with pytest.raises(ValueError, match=setting.flag):
        kubernetes_job(replace(asked, settings=(*asked.settings, setting)), ONE)


def test_file_of_this_host_is_refused():
    with pytest.raises(ValueError, match=r"/srv/bars\.csv"):
        kubernetes_job(spec(data="/srv/bars.csv"), ONE)


def test_shared_memory_of_the_node_is_for_a_job_alone():
    asked = spec()
    asked = replace(asked, settings=(*asked.settings, Ipc(value="host", **WHY)))
    assert pod(yaml.safe_load(kubernetes_job(asked, ONE)))["hostIPC"] is True
    with pytest.raises(ValueError, match="--ipc=host"):
        train_job(asked, TWO)


@pytest.mark.parametrize("name", ["", "Run", "1run", "run_1", "run-", "r" * 64])
def test_name_that_no_cluster_takes_is_refused(name):
    with pytest.raises(ValueError, match="RFC 1035"):
        Placement(name=name, site=SITE)


@given(content=st.text(st.characters(exclude_categories=["C"]), max_size=20), gid=st.integers(1, 2**31 - 1))
def test_text_and_groups_of_any_kind_survive(content, gid):
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


def test_settings_are_explained_field_by_field():
    asked = spec()
    rows = kubernetes_rows(asked, ONE)
    assert {row.reason for row in rows} > {setting.reason for setting in asked.settings}
    assert all(row.reason and row.source for row in kubernetes_rows(asked, replace(ONE, site=FULL)))
    told = {row.flag: row.value for row in rows}
    assert told["pod.securityContext.supplementalGroups"] == "[992]"
    assert told["container.securityContext.allowPrivilegeEscalation"] == "false"
    assert told["container.resources.limits.amd.com/gpu"] == "2"
    assert (told["--network"], told["--init"]) == (None, None)  # no field says these
