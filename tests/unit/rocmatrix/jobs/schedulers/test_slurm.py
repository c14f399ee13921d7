"""A batch script whose nodes run the trainer natively, in Docker, in Apptainer or in Pyxis."""

import shlex
from dataclasses import replace

import pytest

from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.jobs.schedulers.slurm import SCHEDULER, SlurmDestination, SlurmOptions
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT
from tests.fixtures import cells, sysfs
from tests.fixtures.clusters import IMAGE, SLURM, file_of


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
    assert "apptainer exec" in file_of(prepare(replace(SLURM, under="apptainer", image=IMAGE["apptainer"]), **machine))


@pytest.mark.parametrize("under", ["docker", "apptainer", "pyxis"])
def test_login_node_without_cards_sends_to_nodes_that_have_some(prepare, under):
    to = replace(SLURM, under=under, cards=2, image=IMAGE[under])
    assert "--gres=gpu:2" in file_of(prepare(to, cell=cells.GFX1100))
    typed = replace(SLURM, under=under, image=IMAGE[under], slurm=SlurmRequest(gres="gpu:mi300x:8"))
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


@pytest.mark.parametrize("under", ["docker", "apptainer", "pyxis"])
def test_pretrained_folder_and_joined_file_reach_a_container_of_slurm(prepare, tmp_path, under):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    made = prepare(
        replace(SLURM, under=under, image=IMAGE[under]), model=str(link / "llama"), join=str(tmp_path / "vix.csv")
    )
    text = file_of(made)
    assert {"--model=/data/.model/llama", "--join=/data/.join/vix.csv"} <= set(text.replace("\\", " ").split())
    for origin, target in ((link / "llama", "/data/.model/llama"), (tmp_path / "vix.csv", "/data/.join/vix.csv")):
        assert (f"source={origin},target={target},readonly" in text) or (f"{origin}:{target}:ro" in text)


def test_cards_may_be_named_twice_if_both_agree():
    request = SlurmRequest(gres="gpu:mi300x:8")
    assert SlurmDestination(slurm=request).cards_named == 8
    assert SlurmDestination(slurm=request, cards=8).cards_named == 8
    assert SlurmDestination(slurm=SlurmRequest(gres="license:1"), cards=8).cards_named == 8
    assert SlurmDestination().cards_named is None
    for other in (7, 9):
        with pytest.raises(RocmatrixError, match="RM404"):
            SlurmDestination(slurm=request, cards=other)


@pytest.mark.parametrize("under", ["podman", "", "Docker", "apptaine"])
def test_unknown_way_to_run_is_refused_with_the_nearest(under):
    with pytest.raises(RocmatrixError, match="RM404") as refused:
        SlurmDestination(under=under)
    assert "docker" in str(refused.value) or "apptainer" in str(refused.value)


@pytest.mark.parametrize("image", [None, "", "rocm/pytorch:latest", "~/a.sif"])
@pytest.mark.parametrize(
    ("under", "made"), [("apptainer", "docker-daemon:rocmatrix:"), ("pyxis", "dockerd://rocmatrix:")]
)
def test_program_without_a_file_is_refused_with_how_one_is_made(prepare, image, under, made):
    with pytest.raises(RocmatrixError, match="RM404") as refused:
        prepare(replace(SLURM, under=under, image=image), cell=cells.GFX1100, machine=sysfs.two_rx_7900_xt)
    assert f"{made}{cells.GFX1100.name}" in str(refused.value)


@pytest.mark.parametrize(
    "image", ["/shared/a b.sqsh", "registry.example.org#team/rocmatrix:1", "dockerd://rocmatrix:1"]
)
def test_pyxis_takes_a_file_or_an_image_with_its_registry(prepare, image):
    text = file_of(prepare(replace(SLURM, under="pyxis", image=image)))
    assert f"--container-image={shlex.quote(image)} " in text


def test_options_of_a_person_become_a_destination():
    to = SCHEDULER.destination(
        SlurmOptions(nodes=3, cards=4, under="docker", partition="gpu", time="4:00:00", modules="slurm, rocm/6.3")
    )
    assert (to.nodes, to.cards, to.under, to.processes) == (3, 4, "docker", None)
    assert to.slurm == SlurmRequest(partition="gpu", time_limit="4:00:00", modules=("slurm", "rocm/6.3"))
    plain = SCHEDULER.destination(SlurmOptions())
    assert (plain.slurm, plain.under, plain.checkout) == (SlurmRequest(), "native", None)


def test_python_of_the_nodes_runs_without_one_here_and_states_that_it_is_unproven(prepare):
    text = file_of(prepare(replace(SLURM, python="/opt/venv/bin/python", checkout="/nfs/rocmatrix"), run="r"))
    assert "/opt/venv/bin/python" in text and "/opt/python" not in text
    assert "export PYTHONPATH=/nfs/rocmatrix\n" in text
    assert "--cell-absent=" in text


def test_ranks_of_a_node_are_one_for_each_card_or_one(prepare):
    assert prepare(SLURM, run="r").why.startswith("slurm: 2 node(s) of 1 process(es), under native")
    named = prepare(replace(SLURM, cards=4, processes=2, under="docker"), cell=cells.GFX1100, run="r").why
    assert named.startswith("slurm: 2 node(s) of 2 process(es), under docker")


def test_nodes_own_settings_are_explained_for_docker_and_cards_alone(prepare):
    def flags(under, **more):
        made = prepare(replace(SLURM, under=under, cards=1 if more else None, image=IMAGE[under]), **more)
        return {row.flag for row in made.rows if "looked up on each node" in row.reason}

    assert {"--user", "--device", "--group-add"} <= flags("docker", cell=cells.GFX1100)
    assert "--device" not in flags("docker")
    assert flags("apptainer", cell=cells.GFX1100) == set()


def test_checkout_below_a_colon_is_refused():
    with pytest.raises(RocmatrixError, match=r"RM404[\s\S]*colon"):
        SlurmDestination(checkout="/srv/a:b")


def test_name_that_is_no_text_is_refused_before_anything_is_written(prepare):
    with pytest.raises(RocmatrixError, match=r"RM424[\s\S]*UTF-8"):
        prepare(SlurmDestination(), target="q\udcff")
