"""A Job and a TrainJob of one run spec: as looked at, as the published schemas have it, and nothing left unsaid."""

from dataclasses import replace

import pytest
import yaml

from rocmatrix.containers.emit.kubernetes_manifest import Placement, kubernetes_job, kubernetes_rows, train_job
from rocmatrix.containers.settings import Ipc
from tests.fixtures import cells
from tests.fixtures.golden import assert_golden
from tests.fixtures.pods import EMITTED, FULL, ONE, SITE, TWO, WHY, pod, spec

OLDEST, NEWEST = "1.29", "1.37"  # before 1.29 the schemas ask every failure rule for pod conditions: a defect of theirs


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
    requested = replace(placement, site=FULL)
    assert_golden(f"cluster/site.{emit.__name__.replace('_', '-')}.yaml", emit(spec(data="bars/2025.csv"), requested))


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


def test_shared_memory_of_the_node_is_for_a_job_alone():
    requested = spec()
    requested = replace(requested, settings=(*requested.settings, Ipc(value="host", **WHY)))
    assert pod(yaml.safe_load(kubernetes_job(requested, ONE)))["hostIPC"] is True
    with pytest.raises(ValueError, match="--ipc=host"):
        train_job(requested, TWO)


@pytest.mark.parametrize("name", ["", "Run", "1run", "run_1", "run-", "r" * 64])
def test_name_that_no_cluster_takes_is_refused(name):
    with pytest.raises(ValueError, match="RFC 1035"):
        Placement(name=name, site=SITE)


def test_settings_are_explained_field_by_field():
    requested = spec()
    rows = kubernetes_rows(requested, ONE)
    assert {row.reason for row in rows} > {setting.reason for setting in requested.settings}
    assert all(row.reason and row.source for row in kubernetes_rows(requested, replace(ONE, site=FULL)))
    explained = {row.flag: row.value for row in rows}
    assert explained["pod.securityContext.supplementalGroups"] == "[992]"
    assert explained["container.securityContext.allowPrivilegeEscalation"] == "false"
    assert explained["container.resources.limits.amd.com/gpu"] == "2"
    assert (explained["--network"], explained["--init"]) == (None, None)  # no field says these
