"""What the tasks that build and run print."""

import contextlib
import json
from dataclasses import replace

import pytest

from rocmatrix.cli.commands import build as build_command
from rocmatrix.cli.commands import common, jobs
from rocmatrix.cli.commands.build import Build
from rocmatrix.cli.commands.jobs import Smoke
from rocmatrix.cli.options.command import known
from rocmatrix.evidence import recorder, store
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build
from rocmatrix.images.build import Built
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import PROGRAMS, SMOKE, TRAIN
from rocmatrix.jobs.runner import Decision, Finished
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs


def stand_in_build(choice, **_):
    return Built(tag=f"rocmatrix:{choice.cell.name}", inputs="0" * 64, argv=())


CPU_JOB = JobRequest(program=SMOKE, request=Request(gpu="cpu"), where="container", options={})


def test_probes_are_listed_with_their_limits(capsys):
    jobs.list_probes([])
    listed = capsys.readouterr().out
    assert "two_gpu_step_fsdp2" in listed
    assert "LIMIT" in listed
    jobs.list_probes(["two_gpu_step"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "two_gpu_step",
        "two_gpu_step_data_parallel",
        "two_gpu_step_fsdp2",
        "two_gpu_step_pipeline",
    ]


def test_probes_are_listed_as_json_for_programs(capsys):
    jobs.list_probes(["two_gpu_step"], as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["probe"] == "two_gpu_step"


def test_list_of_features_as_json_is_refused_rather_than_printed_as_text(capsys):
    with pytest.raises(SystemExit):
        known()["features"].run({"list": True, "json": True})
    assert "RM404" in (captured := capsys.readouterr()).err and captured.out == ""


def test_probe_that_is_not_known_is_named_with_its_neighbour(capsys):
    with pytest.raises(SystemExit):
        known()["smoke"].run({"list": True, "probe": ["colectives"]})
    assert "did you mean collectives?" in capsys.readouterr().err


@pytest.fixture
def in_container(monkeypatch, tmp_path):
    """Let a job run in a container on a machine with two cards, up to the engine's door."""
    monkeypatch.setattr(common, "hardware_here", lambda: read_hardware(sysfs.two_rx_7900_xt(tmp_path)))
    monkeypatch.setattr("rocmatrix.jobs.job.decide", lambda *_: Decision(where="container", why="for the test"))
    monkeypatch.setattr("rocmatrix.containers.engine.image_id", lambda _: "sha256:image")
    monkeypatch.setattr(jobs, "built_image", stand_in_build)


@pytest.mark.parametrize("status", [125, 126, 127])
def test_engine_that_did_not_start_the_job_is_named(in_container, monkeypatch, capsys, status):
    monkeypatch.setattr("rocmatrix.jobs.job.run", lambda *_, **__: Finished(status=status, events=()))
    with pytest.raises(SystemExit):
        jobs.smoke(CPU_JOB, Smoke())
    assert "RM207" in capsys.readouterr().err


def test_status_after_the_first_event_is_the_jobs_own(in_container, monkeypatch, capsys):
    done = Finished(status=126, events=({"event": "probe", "probe": "blas", "status": "fail"},))
    monkeypatch.setattr("rocmatrix.jobs.job.run", lambda *_, **__: done)
    with pytest.raises(SystemExit):
        jobs.smoke(CPU_JOB, Smoke())
    assert "RM208" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["RM500", "RM590"])
def test_wrong_usage_of_a_suite_is_no_suite(in_container, monkeypatch, capsys, tmp_path, code):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr("rocmatrix.containers.engine.image_id", lambda _: f"sha256:{1:064}")
    done = Finished(status=2, events=({"event": "error", "code": code, "what": "a typo"},))
    monkeypatch.setattr("rocmatrix.jobs.job.run", lambda *_, **__: done)
    with pytest.raises(SystemExit) as ended:
        jobs.smoke(CPU_JOB, Smoke())
    captured = capsys.readouterr()
    assert ended.value.code == 2
    assert "RM208" not in captured.err
    assert "PROBE" not in captured.out
    assert store.read(path) == []


def test_suite_that_another_error_ended_has_failed_and_is_on_record(in_container, monkeypatch, capsys, tmp_path):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr("rocmatrix.containers.engine.image_id", lambda _: f"sha256:{1:064}")
    done = Finished(status=2, events=({"event": "error", "code": "RM501", "what": "no torch"},))
    monkeypatch.setattr("rocmatrix.jobs.job.run", lambda *_, **__: done)
    with pytest.raises(SystemExit):
        jobs.smoke(CPU_JOB, Smoke())
    assert "RM208" in capsys.readouterr().err
    (made,) = store.read(path)
    assert not made.passed


def test_setting_that_the_trainer_refuses_is_reported_before_the_build(in_container, monkeypatch, capfd):
    monkeypatch.setattr(jobs, "built_image", lambda *_, **__: pytest.fail("an image was built"))
    request = replace(CPU_JOB, program=TRAIN, options={"sequence": "8k"})
    for each in (request, replace(request, dry_run=True)):
        with pytest.raises(SystemExit) as ended:
            jobs.run_job(each)
        assert ended.value.code == 2
        assert "'8k' is not a whole number" in capfd.readouterr().err


def test_card_that_is_missing_is_reported_before_the_build(in_container, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "built_image", lambda *_, **__: pytest.fail("built first"))
    with pytest.raises(SystemExit):
        job_request = JobRequest(
            program=SMOKE, request=Request(gpu="gfx1100"), where="container", options={}, cards=(7,)
        )
        jobs.smoke(job_request, Smoke())
    assert "RM303" in capsys.readouterr().err


def devices(argv):
    return [word.rpartition("/")[2] for word in argv if word.startswith("--device=/dev/dri")]


@pytest.mark.parametrize("name", ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_job_in_a_container_gets_the_cards_that_the_shell_leaves_and_their_probes(in_container, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    job_request = JobRequest(program=SMOKE, request=Request(), where="container", options={}, dry_run=True)
    prepared, place = jobs.prepared_job(job_request)
    assert devices(prepared.argv) == ["renderD129:rw"]
    assert "p2p" not in place.requested_probes


def test_smoke_next_to_a_card_without_a_locked_cell_tests_no_cpu_in_its_place(in_container, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "built_image", lambda *_, **__: pytest.fail("built"))
    found = common.hardware_here()
    cards = tuple(replace(card, gfx="gfx1031") for card in found.cards)
    monkeypatch.setattr(common, "hardware_here", lambda: replace(found, cards=cards))
    with pytest.raises(SystemExit):
        jobs.smoke(JobRequest(program=SMOKE, request=Request(gpu="auto"), where="container", options={}), Smoke())
    shown = capsys.readouterr().err
    assert shown.index("NO CARD IS USED") < shown.index("cell: ")
    assert "RM102" in shown


def test_card_that_is_named_and_not_here_is_refused_natively_before_wheels_are_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(common, "hardware_here", lambda: read_hardware(sysfs.no_driver(tmp_path)))
    monkeypatch.setattr("rocmatrix.images.native_env.prepare", lambda *_, **__: pytest.fail("fetched"))
    job_request = JobRequest(program=SMOKE, request=Request(gpu="gfx1100"), where="native", options={})
    with pytest.raises(RocmatrixError, match="RM301"):
        jobs.prepared_job(job_request)


def test_job_gets_the_cards_that_were_chosen(in_container):
    job_request = JobRequest(
        program=SMOKE, request=Request(gpu="gfx1100"), where="container", options={}, cards=(1,), dry_run=True
    )
    argv = jobs.prepared_job(job_request)[0].argv
    assert [word for word in argv if word.startswith("--device=/dev/dri")] == [
        "--device=/dev/dri/renderD129:/dev/dri/renderD129:rw"
    ]


def test_wheelhouse_that_is_not_there_is_no_new_folder(tmp_path, capsys):
    with pytest.raises(SystemExit):
        build_cpu(wheelhouse=str(tmp_path / "typo"))
    assert "--wheelhouse names no folder" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def build_cpu(wheelhouse=""):
    build_command.build(Build(gpu="cpu", wheelhouse=wheelhouse, dry_run=True))


def test_cause_of_a_failure_of_two_cards_is_reported(monkeypatch, capsys, tmp_path):
    trace = {"helped": "peer-to-peer off", "likely_cause": "IOMMU"}
    verdict = {"event": "probe", "probe": "two_gpu_step", "status": "fail", "summary": "apart", "diagnosis": trace}
    done = Finished(status=1, events=(verdict,))
    place = recorder.Place(cell=cells.CPU, hardware=read_hardware(sysfs.no_driver(tmp_path)))
    monkeypatch.setattr(jobs, "run_and_record", lambda job_request: (done, place))
    with pytest.raises(SystemExit, match="2"):
        jobs.smoke(CPU_JOB, Smoke())
    stderr = capsys.readouterr().err
    assert "two_gpu_step was traced:" in stderr
    assert "peer-to-peer off" in stderr
    assert "IOMMU" in stderr


@pytest.mark.parametrize("program", ["train", "smoke", "bench"])
def test_jobs_keep_their_logs_where_builds_keep_theirs(in_container, monkeypatch, tmp_path, program):
    seen = []
    monkeypatch.setattr(
        "rocmatrix.jobs.job.run", lambda *_, log, **__: seen.append(log) or Finished(status=0, events=())
    )
    options = {"output": str(tmp_path / "out")}
    jobs.run_job(JobRequest(program=PROGRAMS[program], request=Request(gpu="cpu"), where="container", options=options))
    (log,) = seen
    assert log.parent == build.log_file(cells.CPU, build_command.ROOT).parent
    assert log.name.startswith(f"{program}-{cells.CPU.name}-")


@pytest.mark.parametrize(("code", "diagnosed"), [("RM730", False), ("RM500", False), ("RM542", False), ("RM521", True)])
def test_training_that_refused_its_input_is_not_diagnosed(in_container, monkeypatch, capsys, code, diagnosed):
    done = Finished(status=2, events=({"event": "error", "code": code},))
    monkeypatch.setattr("rocmatrix.jobs.job.run", lambda *_, **__: done)
    monkeypatch.setattr(recorder, "watched", lambda *_: contextlib.nullcontext(lambda _: None))
    request = replace(CPU_JOB, program=TRAIN, options={})
    with pytest.raises(SystemExit):
        known()["train"].body(request, None)
    assert ("diagnosis" in capsys.readouterr().err) is diagnosed


START = {"event": "start", "run": "mine"}


@pytest.mark.parametrize(
    ("status", "events", "words"),
    [
        (-9, (START,), ["ended by SIGKILL", "--run mine --resume auto", "memory"]),
        (137, (), ["ended by SIGKILL", "memory"]),
        (-6, (START,), ["ended by SIGABRT", "--resume auto"]),
        (3, (), ["ended with status 3"]),
    ],
)
def test_training_that_ended_without_a_word_is_a_coded_error(status, events, words):
    error = jobs.sudden_end(Finished(status=status, events=events))
    assert error.code == "RM656"
    assert all(word in error.render() for word in words)


def test_training_that_reported_its_error_gets_no_second_one():
    assert jobs.sudden_end(Finished(status=2, events=({"event": "error", "code": "RM513"},))) is None
