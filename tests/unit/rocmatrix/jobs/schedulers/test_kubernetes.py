"""A Job or a TrainJob of this machine's or a site's facts; results and data on claims."""

import csv
import io
from dataclasses import replace

import pytest
import yaml

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.jobs.schedulers import scheduler
from rocmatrix.jobs.schedulers.kubernetes import KubernetesOptions
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells
from tests.fixtures.clusters import KUBERNETES, file_of


@pytest.mark.parametrize(("typed", "groups"), [("", None), ("none", ()), ("44, 992", (44, 992))])
def test_empty_group_differs_from_an_absent_one(typed, groups):
    assert scheduler.destination("kubernetes", KubernetesOptions(groups=typed)).groups == groups


@pytest.mark.parametrize(("nodes", "kind"), [(1, "Job"), (2, "TrainJob")])
def test_kubernetes_gets_a_job_or_a_train_job(prepare, nodes, kind):
    made = prepare(replace(KUBERNETES, nodes=nodes, image="registry.example/x@sha256:0"), run="My_Run.1")
    assert made.argv[:2] == ["kubectl", "apply"]
    document = yaml.safe_load(file_of(made))
    assert (document["kind"], document["metadata"]["name"]) == (kind, "my-run-1")
    assert "--run=My_Run.1" in file_of(made)


def test_pod_runs_as_the_images_user_or_as_named(prepare):
    assert "runAsUser: 10001" in file_of(prepare(KUBERNETES))
    text = file_of(prepare(replace(KUBERNETES, user="1234:5678")))
    assert "runAsUser: 1234" in text
    assert "runAsGroup: 5678" in text


@pytest.mark.parametrize("groups", [(992,), (44, 109), ()])
def test_machine_without_cards_sends_the_given_facts_of_the_nodes(prepare, groups):
    made = prepare(replace(KUBERNETES, cards=4, groups=groups), cell=cells.GFX1100)
    trainer = yaml.safe_load(file_of(made))["spec"]["trainer"]
    assert trainer["resourcesPerNode"] == {"limits": {"amd.com/gpu": "4"}}
    assert trainer["numProcPerNode"] == 4
    text = "\n".join(line.strip() for line in file_of(made).splitlines())
    assert "\n".join(f"- {gid}" for gid in groups) in text
    assert ("supplementalGroups" in text) == bool(groups)


def test_data_of_a_pod_is_a_path_on_a_claim(prepare):
    made = prepare(replace(KUBERNETES, nodes=1, site=Site(claim="runs", data_claim="sets")), data="bars/2025.csv")
    assert "bars/2025.csv on claim sets" in made.why
    text = file_of(made)
    assert "subPath: bars/2025.csv" in text
    assert "claimName: sets" in text
    assert "--data=/data/2025.csv" in text


def test_pretrained_folder_of_a_pod_is_a_path_on_the_claim_of_the_data(prepare):
    to = replace(KUBERNETES, nodes=1, site=Site(claim="runs", data_claim="sets"))
    text = file_of(prepare(to, data="bars/2025.csv", model="models/llama"))
    assert text.count("claimName: sets") == 1
    assert {"subPath: models/llama", "subPath: bars/2025.csv"} <= {line.strip(" -") for line in text.splitlines()}
    assert "--model=/data/.model/llama" in text
    with pytest.raises(RocmatrixError, match=r"RM426[\s\S]*--model names /srv/llama"):
        prepare(to, data="bars/2025.csv", model="/srv/llama")


def name_of(prepare, run, nodes=1):
    return yaml.safe_load(file_of(prepare(replace(KUBERNETES, nodes=nodes), run=run)))["metadata"]["name"]


@pytest.mark.parametrize(("one", "other"), [("x" * 69 + "a", "x" * 69 + "b"), ("жж", "яя"), ("a b", "a-b")])
def test_runs_whose_names_lose_letters_are_different_jobs(prepare, one, other):
    assert name_of(prepare, one) != name_of(prepare, other)


@pytest.mark.parametrize(("nodes", "added"), [(1, ""), (2, "-node-0-1-abcde"), (200, "-node-0-199-abcde")])
def test_name_of_a_job_leaves_room_for_what_a_job_set_adds(prepare, nodes, added):
    name = name_of(prepare, "Y" * 100, nodes)
    assert len(name + added) == 63
    assert name == name_of(prepare, "Y" * 100, nodes)
    assert len(name_of(prepare, "y" * 60, nodes) + added) <= 63


@pytest.mark.parametrize("folder", ["a,b", 'say "hi"', "two\nlines"])
def test_file_of_a_job_is_one_path_to_kubectl(prepare, tmp_path, folder):
    made = prepare(replace(KUBERNETES, nodes=1), output=str(tmp_path / folder))
    (path,) = made.files
    ((listed,),) = csv.reader(io.StringIO(made.argv[-1].removeprefix("--filename="), newline=""))
    assert listed == str(path)


def test_path_that_kubernetes_or_kubectl_cannot_take_is_rm424(prepare, tmp_path):
    to = replace(KUBERNETES, nodes=1)
    with pytest.raises(RocmatrixError, match=r"RM424[\s\S]*colon"):
        prepare(to, data="sets/12:30.csv")
    with pytest.raises(RocmatrixError, match=r"RM424[\s\S]*Windows"):
        prepare(to, output=str(tmp_path / "a\r\nb"))
