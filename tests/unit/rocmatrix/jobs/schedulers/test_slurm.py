"""A batch script whose nodes run the trainer natively, in Docker or in Apptainer."""

from dataclasses import replace

import pytest

from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.runtime.paths import ROOT
from tests.fixtures import cells, sysfs
from tests.fixtures.clusters import SLURM, file_of


def test_slurm_gets_the_native_command_behind_torchrun(prepare, tmp_path):
    made = prepare(SLURM, run="r", epochs="3")
    assert made.argv == ["sbatch", "--parsable", str(tmp_path / "runs" / "r.sbatch")]
    text = file_of(made)
    assert "-m -- trainer train" in text
    assert {"--run=r", "--epochs=3", "--resume=auto"} <= set(text.split())
    assert f"export PYTHONPATH={ROOT}\n" in text
    assert "export A=" not in text  # the shell of whoever submits stays here


def test_containers_on_several_nodes_meet_on_the_nodes_network(prepare):
    machine = {"cell": cells.GFX1100, "machine": sysfs.two_rx_7900_xt}
    two = file_of(prepare(replace(SLURM, under="docker"), **machine))
    one = file_of(prepare(replace(SLURM, under="docker", nodes=1), **machine))
    assert "--network=host" in two
    assert "SOCKET_IFNAME" not in two
    assert "--network=none" in one
    assert "GLOO_SOCKET_IFNAME=lo" in one
    assert "apptainer exec" in file_of(prepare(replace(SLURM, under="apptainer"), **machine))


@pytest.mark.parametrize("under", ["docker", "apptainer"])
def test_login_node_without_cards_sends_to_nodes_that_have_some(prepare, under):
    to = replace(SLURM, under=under, cards=2)
    assert "--gres=gpu:2" in file_of(prepare(to, cell=cells.GFX1100))
    typed = replace(SLURM, under=under, slurm=SlurmRequest(gres="gpu:mi300x:8"))
    assert {"--gres=gpu:mi300x:8", "--nproc-per-node=8"} <= set(file_of(prepare(typed, cell=cells.GFX1100)).split())


def test_data_and_a_recipe_of_a_shared_folder_reach_a_container_of_slurm(prepare, tmp_path):
    recipe = tmp_path / "my.yaml"
    recipe.write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    code = tmp_path / "mine.py"
    code.touch()
    own = {"recipe": str(recipe), "callback": f"{code}:Mine"}
    made = prepare(replace(SLURM, under="docker"), data=str(link / "bars.csv"), **own)
    text = file_of(made)
    assert f"source={link}/bars.csv,target=/data/bars.csv,readonly" in text  # not where the link leads to here
    assert f"source={recipe},target=/recipe/my.yaml,readonly" in text
    assert f"source={code},target=/callbacks/0/mine.py,readonly" in text
    assert {"--data=/data/bars.csv", "--recipe=/recipe/my.yaml"} <= set(text.split())
    assert "--callback=/callbacks/0/mine.py:Mine" in text


@pytest.mark.parametrize("under", ["docker", "apptainer"])
def test_pretrained_folder_and_joined_file_reach_a_container_of_slurm(prepare, tmp_path, under):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    made = prepare(replace(SLURM, under=under), model=str(link / "llama"), join=str(tmp_path / "vix.csv"))
    text = file_of(made)
    assert {"--model=/data/.model/llama", "--join=/data/.join/vix.csv"} <= set(text.replace("\\", " ").split())
    for origin, target in ((link / "llama", "/data/.model/llama"), (tmp_path / "vix.csv", "/data/.join/vix.csv")):
        assert (f"source={origin},target={target},readonly" in text) or (f"{origin}:{target}:ro" in text)
