"""What a person says of a cluster's nodes and site, typed and checked."""

import pytest

from rocmatrix.cli.commands import cluster
from rocmatrix.cli.options.command import known
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import TRAIN
from rocmatrix.matrix.resolver.resolve import Request

NODES = {"nodes": 2, "cards": 1}
CLAIM = {"claim": "c"}
SUBMIT = known()["submit"].options


def submit(tmp_path, *, explain=False, settings=(), **place):
    options = {"output": str(tmp_path), "run": "r", **dict(settings)}
    request = Request(cell="rocm6.3-torch2.7.1-gfx1100")
    job_request = JobRequest(program=TRAIN, request=request, where="", options=options, dry_run=True)
    cluster.submit(job_request, SUBMIT(engine="kubernetes", explain=explain, **NODES, **CLAIM, **place))


def test_dry_run_prints_the_files_and_the_command_and_leaves_nothing(tmp_path, capsys):
    submit(tmp_path, groups="44, 992")
    out = capsys.readouterr().out
    assert "- 44\n" in out
    assert "- 992\n" in out
    assert out.splitlines()[-1] == f"kubectl apply --filename={tmp_path}/r.yaml"
    assert list(tmp_path.iterdir()) == []


def test_explanation_sends_nothing_and_names_reason_and_source(tmp_path, capsys):
    submit(tmp_path, groups="44,992", explain=True)
    assert "pod.securityContext.supplementalGroups=[44]" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("groups", ["render", "44,video", "-1"])
def test_group_by_name_is_refused(tmp_path, capsys, groups):
    with pytest.raises(SystemExit) as ended:
        submit(tmp_path, groups=groups)
    assert ended.value.code == 2
    assert "RM404" in capsys.readouterr().err


def test_setting_that_the_trainer_refuses_is_not_sent_to_a_queue(tmp_path, capfd):
    with pytest.raises(SystemExit) as ended:
        submit(tmp_path, settings={"optimizer": "adam"})
    assert (ended.value.code, list(tmp_path.iterdir())) == (2, [])
    assert "'adam' is none of adamw" in (captured := capfd.readouterr()).err and captured.out == ""
