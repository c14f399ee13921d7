"""A job as it will be run: options become flags, places move into the container, a dry run touches nothing."""

import os
from contextlib import nullcontext
from dataclasses import replace

import pytest

from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import native_env
from rocmatrix.jobs import contained, job, runner
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import PROGRAMS
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.cells import MATRIX


def job_request(program="train", **choices):
    given = {"request": Request(), "where": "auto", "options": {}, "dry_run": True} | choices
    return JobRequest(program=PROGRAMS[program], **given)


def test_program_runs_with_its_environment_and_a_docker_run_goes_through_its_container(monkeypatch):
    seen = []
    monkeypatch.setattr(runner, "attached", lambda argv, **more: seen.append((argv, more["environment"])))
    monkeypatch.setattr(contained, "run", lambda argv, **more: seen.append((argv, sorted(more))))
    job.run(["python3", "-m", "trainer"], environment={"A": "1"}, show=print)
    job.run(["docker", "run", "image"], show=print)
    assert seen == [(["python3", "-m", "trainer"], {"A": "1"}), (["docker", "run", "image"], ["log", "show"])]


@pytest.fixture
def own_python(monkeypatch):
    monkeypatch.setattr(
        native_env,
        "prepare",
        lambda *args, cell, **kwargs: native_env.Native(python="python3", cell=cell, why="stand-in"),
    )


def test_native_run_names_cell_commit_and_an_absolute_output(own_python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepared = job.native_job(
        job_request(options={"epochs": "3"}),
        matrix=MATRIX,
        cell=cells.CPU,
        hardware=read_hardware(sysfs.no_driver(tmp_path / "host")),
    )
    assert prepared.argv[:4] == ["python3", "-P", "-m", "trainer"]
    assert f"--output={tmp_path}/TRAINING" in prepared.argv
    assert f"--cell={cells.CPU.name}" in prepared.argv
    assert any(word.startswith("--commit=") for word in prepared.argv)
    assert not (tmp_path / "TRAINING").exists()


def test_places_move_into_the_container(tmp_path):
    options = {"output": str(tmp_path / "out"), "data": str(tmp_path / "bars.csv")}
    (tmp_path / "bars.csv").write_text("stand-in")
    prepared = job.container_job(
        job_request(options=options),
        cell=cells.CPU,
        hardware=read_hardware(sysfs.no_driver(tmp_path / "host")),
        image="rocmatrix:cpu-torch2.13.0",
    )
    assert "--output=/training" in prepared.argv
    assert "--data=/data/bars.csv" in prepared.argv
    assert prepared.why.endswith(f"/training is {tmp_path}/out and /data/bars.csv is {tmp_path}/bars.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("host", "left_out"), [(sysfs.mi50, True), (sysfs.two_rx_7900_xt, False)])
def test_two_card_step_needs_two_cards(host, left_out, tmp_path):
    hardware = read_hardware(host(tmp_path))
    cell = next(c for c in MATRIX.cells if c.architecture == hardware.architectures[0])
    options, note = job.probes_for(job_request("smoke"), cell=cell, hardware=hardware)
    assert ("probe" in options) == left_out
    assert ("the probes of two are left out: p2p, collectives, two_gpu_step" in note) == left_out
    assert not left_out or not {"p2p", "collectives", "two_gpu_step"} & set(options["probe"])


@pytest.mark.parametrize(("host", "left_out"), [(sysfs.mi50, True), (sysfs.two_rx_7900_xt, False)])
def test_cards_that_an_old_kernel_leaves_unnamed_decide_which_probes_run(host, left_out, tmp_path):
    found = read_hardware(host(tmp_path))
    hardware = replace(found, cards=tuple(replace(card, gfx=None) for card in found.cards))
    options, _ = job.probes_for(job_request("smoke"), cell=cells.GFX1100, hardware=hardware)
    assert ("probe" in options) == left_out


@pytest.mark.parametrize(("cards", "left_out"), [((0,), True), ((0, 0), True), ((0, 1), False), ((), False)])
def test_cards_that_are_chosen_decide_which_probes_run(cards, left_out, tmp_path):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    cell = next(c for c in MATRIX.cells if c.architecture == "gfx1100")
    options, note = job.probes_for(job_request("smoke", cards=cards), cell=cell, hardware=hardware)
    assert ("probe" in options) == left_out
    assert ("one card, so the probes of two are left out" in note) == left_out


def test_probes_named_by_hand_are_kept(tmp_path):
    chosen = job_request("smoke", options={"probe": ["two_gpu_step"]})
    cell = MATRIX.cell("rocm6.3-torch2.7.1-gfx906")
    assert job.probes_for(chosen, cell=cell, hardware=read_hardware(sysfs.mi50(tmp_path))) == (
        {"probe": ["two_gpu_step"]},
        "",
    )


@pytest.fixture
def cpu_build_only(monkeypatch):
    """A machine for whose Python only the CPU build is locked."""
    fallback = native_env.Native(python="python3", cell=cells.CPU, why="stand-in: the CPU build")
    monkeypatch.setattr(native_env, "prepare", lambda *args, **kwargs: fallback)


def test_smoke_run_expects_what_was_requested_not_what_fits(cpu_build_only, tmp_path):
    host = read_hardware(sysfs.mi50(tmp_path))
    prepared = job.native_job(job_request("smoke"), matrix=MATRIX, cell=cells.GFX906, hardware=host)
    assert "--expect=rocm" in prepared.argv


@pytest.mark.parametrize("requested", [{"gpu": "gfx906"}, {"cell": cells.GFX906.name}, {"rocm": "6.3"}])
def test_card_requested_by_name_never_becomes_a_cpu(cpu_build_only, tmp_path, requested):
    host = read_hardware(sysfs.no_driver(tmp_path))
    with pytest.raises(RocmatrixError, match="RM403"):
        job.native_job(job_request(request=Request(**requested)), matrix=MATRIX, cell=cells.GFX906, hardware=host)


def test_data_that_is_not_there_is_named_before_a_container_starts(tmp_path):
    missing = job_request(options={"data": str(tmp_path / "no.csv")}, dry_run=False)
    host = read_hardware(sysfs.no_driver(tmp_path))
    with pytest.raises(RocmatrixError, match="RM404"):
        job.container_job(missing, cell=cells.CPU, hardware=host, image="rocmatrix:test")


def test_container_for_more_ranks_than_cards_is_refused_before_a_build(tmp_path):
    host = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    with pytest.raises(RocmatrixError, match="--ranks 3, and 2 card"):
        job.check_cards(job_request(options={"ranks": "3"}), cell=cells.GFX1100, hardware=host)


def test_closed_node_of_a_card_that_a_rootless_engine_cannot_hide_is_refused_before_a_build(tmp_path, monkeypatch):
    machine = sysfs.desktop_with_igpu(tmp_path, render_gid=os.getgid())
    machine.owners["dev/dri/renderD128"] = (12345, 12345, 0o600)  # the processor's own, which no run uses
    monkeypatch.setattr(job.engine, "require_cards", lambda: None)
    for rootless in (False, True):
        monkeypatch.setattr(job.engine, "is_rootless", lambda rootless=rootless: rootless)
        with pytest.raises(RocmatrixError, match="renderD128") if rootless else nullcontext():
            job.check_cards(job_request(), cell=cells.GFX1100, hardware=read_hardware(machine))


def test_choice_of_the_shell_does_not_filter_the_cards_that_a_run_chose_once_more():
    shell = {"HIP_VISIBLE_DEVICES": "1", "PATH": "/bin"}
    assert job.without_second_filters(shell, {"ROCR_VISIBLE_DEVICES": "1"}) == {"PATH": "/bin"}
    assert job.without_second_filters(shell, {}) == shell


def test_cards_are_chosen_natively_too(tmp_path):
    host = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    one = job_request("smoke", cards=(1,))
    assert job.visible(one, cell=cells.GFX1100, hardware=host) == {"ROCR_VISIBLE_DEVICES": "GPU-13a10000000000a2"}
    assert job.visible(job_request("smoke"), cell=cells.GFX1100, hardware=host) == {}
    with pytest.raises(RocmatrixError, match="RM303"):
        job.visible(job_request("smoke", cards=(5,)), cell=cells.GFX1100, hardware=host)


FOREIGN = native_env.Native(python="python3", cell=None, why="the active environment's torch 2.13.0")


def test_foreign_environment_has_no_cell_and_reports_why():
    provenance = job.native_provenance(job_request(forced=("rule-a",)), runner=FOREIGN, requested=cells.CPU)
    assert "--cell-absent=the active environment's torch 2.13.0, whose wheels no cell locked" in provenance
    assert not any(word.startswith(("--cell=", "--forced=")) for word in provenance)


def test_overridden_rules_are_reported_for_their_cell():
    own = native_env.Native(python="python3", cell=cells.CPU, why="stand-in")
    assert "--forced=rule-a,rule-b" in job.native_provenance(
        job_request(forced=("rule-a", "rule-b")), runner=own, requested=cells.CPU
    )
    other = next(cell for cell in MATRIX.cells if cell.name != cells.CPU.name)
    assert not any(
        "--forced" in word for word in job.native_provenance(job_request(forced=("x",)), runner=own, requested=other)
    )


def container_argv(tmp_path, **choices):
    chosen_job = job_request(**choices)
    host = read_hardware(sysfs.no_driver(tmp_path / "host"))
    return job.container_job(chosen_job, cell=cells.CPU, hardware=host, image="rocmatrix:x").argv


def test_overridden_rules_are_reported_in_a_container(tmp_path):
    assert "--forced=rule-a" in container_argv(tmp_path, forced=("rule-a",))
    assert not any("--forced" in word for word in container_argv(tmp_path, forced=("a",), program="smoke"))


def test_callback_files_are_mounted_read_only_each_under_its_number(tmp_path):
    (tmp_path / "other").mkdir()
    one, other = tmp_path / "mine.py", tmp_path / "other" / "mine.py"
    one.touch(), other.touch()
    argv = container_argv(tmp_path, options={"callback": f"{one}:A, installed.module:B,{other}:C"})
    assert "--callback=/callbacks/0/mine.py:A,installed.module:B,/callbacks/1/mine.py:C" in argv
    for number, file in enumerate((one, other)):
        (mount,) = [word for word in argv if f"/callbacks/{number}/mine.py" in word and str(file) in word]
        assert "readonly" in mount
    assert not any("/callbacks/" in word for word in container_argv(tmp_path, options={"callback": "none"}))


def test_callback_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="RM404"):
        container_argv(tmp_path, options={"callback": f"{tmp_path}/nowhere.py:A"})


def test_recipe_file_is_mounted_and_one_by_name_is_in_the_image(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("train:\n  epochs: 1\n")
    argv = container_argv(tmp_path, options={"recipe": str(file)})
    assert "--recipe=/recipe/mine.yaml" in argv
    assert any(str(file) in word and "/recipe/mine.yaml" in word for word in argv)
    named = container_argv(tmp_path, options={"recipe": "quick"})
    assert "--recipe=quick" in named
    assert not any("/recipe/" in word for word in named)


def test_second_file_and_pretrained_folder_move_into_the_container(tmp_path):
    for name in ("a", "b", "llama"):
        (tmp_path / name).mkdir()
    for name in ("a/bars.csv", "b/bars.csv"):
        (tmp_path / name).touch()
    options = {"data": str(tmp_path / "a" / "bars.csv"), "join": str(tmp_path / "b" / "bars.csv")}
    machine = read_hardware(sysfs.no_driver(tmp_path / "host"))

    def argv(**more):
        request = job_request(options=options | more)
        return job.container_job(request, cell=cells.CPU, hardware=machine, image="rocmatrix:cpu").argv

    prepared = argv(model=str(tmp_path / "llama"))
    assert {"--join=/data/.join/bars.csv", "--model=/data/.model/llama"} <= set(prepared)
    mounts = {word for word in prepared if word.startswith("--mount=type=bind")}
    for origin, target in (("b/bars.csv", "/data/.join/bars.csv"), ("llama", "/data/.model/llama")):
        assert f"--mount=type=bind,source={tmp_path / origin},target={target},readonly" in mounts
    assert not [word for word in argv(model="none") if "--model=/data" in word]
    with pytest.raises(RocmatrixError, match="--model names nothing"):
        argv(model=str(tmp_path / "absent"))
