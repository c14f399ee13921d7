"""What `run` and `devcontainer` print and write. The machines are SYNTHETIC; nothing is started."""

import json
import re
import shlex
import sys
from contextlib import nullcontext

import pytest
import yaml

from rocmatrix.cli.commands import run
from rocmatrix.cli.commands.run import Devcontainer, Run
from rocmatrix.containers import engine
from rocmatrix.containers.emit.target import Host
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images.build import Built
from rocmatrix.jobs import devcontainer as workplace
from rocmatrix.jobs import interactive
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import sysfs
from tests.fixtures.commented_json import without_comments

OPEN = Request(rocm=None, torch=None, gpu=None, cell=None)
CPU = Request(rocm=None, torch=None, gpu="cpu", cell=None)


@pytest.fixture(autouse=True)
def engine_of_root(monkeypatch):
    """Whatever engine this machine has, none of these tests is about a rootless one that does not say so."""
    monkeypatch.setattr(engine, "is_rootless", lambda: False)
    monkeypatch.setattr(workplace, "rootless_engine", lambda: None)


@pytest.fixture
def on(monkeypatch, tmp_path):
    """Return a function that makes this machine look like a made-up one."""

    def on(build, **choices):
        machine = build(tmp_path / "machine", **choices)
        monkeypatch.setattr(interactive, "host_of", lambda _: Host(hardware=read_hardware(machine), rootless=True))

    return on


@pytest.fixture
def run_command(capsys, monkeypatch):
    """Return a function: what is asked, to what is printed. Whatever is typed has a folder and a user."""

    def run_command(request, **typed):
        command, features = typed.pop("command", ()), {f"with_{name}": True for name in typed.pop("features", ())}
        options = {"output": "/srv/training", "user": "1000:1000", "gpu": request.gpu or ""} | features | typed
        monkeypatch.setattr(sys, "argv", ["invokew", "run", "--", *command])
        run.run(Run(**options))
        return capsys.readouterr()

    return run_command


def test_flags_are_printed_whole_with_reason_and_source(on, run_command):
    on(sysfs.two_rx_7900_xt, render_gid=109)
    lines = run_command(OPEN, explain=True).out.splitlines()
    at = lines.index("--group-add=109")
    assert "owns /dev/kfd, /dev/dri/renderD128, /dev/dri/renderD129 on this host" in lines[at + 1]
    assert any(line.startswith("    [ROCm/ROCm-docker#90") for line in lines[at : at + 4])
    assert lines.index("Not given:") < lines.index("--privileged")


def test_dry_run_explains_each_of_its_words(on, run_command):
    on(sysfs.two_rx_7900_xt)
    words = shlex.split(run_command(OPEN, dry_run=True).out)
    options = [word for word in words if word.startswith("--")]
    lines = run_command(OPEN, explain=True).out.partition("Not given:")[0].splitlines()
    assert options
    assert [word for word in options if word not in lines] == []


def test_feature_moves_its_flag_from_what_is_not_given(on, run_command):
    on(sysfs.two_rx_7900_xt)
    given, _, left_out = run_command(OPEN, explain=True, features=["debugger"]).out.partition("Not given:")
    assert "--cap-add=SYS_PTRACE" in given.splitlines()
    assert "--cap-add=SYS_PTRACE" not in left_out.splitlines()


def test_explanation_is_read_by_programs(on, run_command):
    on(sysfs.two_rx_7900_xt, render_gid=109)
    document = json.loads(run_command(OPEN, target="podman", explain=True, json=True).out)
    assert document["target"] == "podman"
    rows = {row["flag"]: row for row in document["rows"]}
    assert rows["--group-add"]["value"] == "keep-groups"
    assert set(rows["--userns"]) == {"flag", "value", "reason", "source"}


def test_dry_run_prints_the_very_command(on, run_command):
    on(sysfs.two_rx_7900_xt)
    argv = shlex.split(run_command(OPEN, command=["bash", "-c", "echo 'a  b'"], dry_run=True).out)
    assert argv[:4] == ["docker", "run", "--interactive", "--rm"]
    assert argv[-2:] == ["-c", "echo 'a  b'"]


def test_target_prints_its_text_alone_on_standard_output(on, run_command):
    on(sysfs.two_rx_7900_xt, render_gid=109)
    assert yaml.safe_load(run_command(OPEN, target="compose").out)["services"]["train"]["group_add"] == ["109"]
    assert json.loads(run_command(OPEN, target="cdi").out)["kind"] == "amd.com/gpu"


def test_podman_run_reports_what_this_user_lacks(on, run_command):
    on(sysfs.two_rx_7900_xt, render_gid=54321)
    assert "this user is not in group 54321" in run_command(OPEN, target="podman").err


def test_target_is_written_to_the_given_path(on, run_command, tmp_path):
    on(sysfs.two_rx_7900_xt)
    assert run_command(OPEN, target="cdi", to=str(tmp_path / "cdi" / "amd.json")).out == ""
    assert json.loads((tmp_path / "cdi" / "amd.json").read_text())["cdiVersion"] == "0.5.0"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ({"target": "podmann"}, "RM404"),
        ({"target": "docker", "cards": "9"}, "RM303"),
        ({"target": "docker", "features": ["rdma"]}, "RM410"),
        ({"target": "devcontainer", "user": "0:0"}, "RM412"),
        ({"sysfs": "/somewhere"}, "RM404"),
    ],
)
def test_mistakes_end_with_their_code(on, run_command, capsys, typed, code):
    on(sysfs.two_rx_7900_xt)
    with pytest.raises(SystemExit) as ended:
        run_command(OPEN, **typed)
    assert ended.value.code == 2
    assert code in capsys.readouterr().err


def test_engine_without_this_machines_cards_is_refused_before_a_build(on, run_command, monkeypatch, capsys):
    def refuse():
        raise RocmatrixError("RM201", what="another kernel")

    on(sysfs.two_rx_7900_xt)
    monkeypatch.setattr(engine, "require_cards", refuse)
    monkeypatch.setattr("rocmatrix.cli.commands.build.built_image", lambda *_, **__: pytest.fail("built first"))
    with pytest.raises(SystemExit):
        run_command(OPEN, command=("true",))
    assert "RM201" in capsys.readouterr().err


def test_missing_card_is_reported_before_a_build(on, run_command, capsys, monkeypatch):
    on(sysfs.no_driver)
    monkeypatch.setattr("rocmatrix.cli.commands.build.built_image", lambda *_, **__: pytest.fail("built first"))
    with pytest.raises(SystemExit):
        run_command(Request(rocm=None, torch=None, gpu="gfx1100", cell=None))
    assert "RM301" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "words"), [(0, ""), (7, ""), (125, "RM207"), (127, "RM207")])
def test_programs_status_is_the_tasks(on, run_command, capsys, monkeypatch, tmp_path, status, words):
    on(sysfs.no_driver)
    built = Built(tag="rocmatrix:cpu", inputs="0" * 64, argv=())
    monkeypatch.setattr("rocmatrix.cli.commands.build.built_image", lambda *_, **__: built)
    monkeypatch.setattr(interactive, "attached", lambda argv, variables: status)
    with pytest.raises(SystemExit) as ended:
        run_command(CPU, output=str(tmp_path / "runs"), command=["true"])
    assert ended.value.code == status
    assert words in capsys.readouterr().err
    assert (tmp_path / "runs").is_dir()


@pytest.mark.parametrize("allow", [True, False])
def test_unlocked_cell_is_built_by_run_where_that_is_allowed_alone(on, run_command, monkeypatch, tmp_path, allow):
    on(sysfs.two_rx_7900_xt)
    seen, built = {}, Built(tag="rocmatrix:unlocked", inputs="0" * 64, argv=())
    monkeypatch.setattr("rocmatrix.cli.commands.build.built_image", lambda *_, **more: seen.update(more) or built)
    monkeypatch.setattr(interactive, "attached", lambda argv, variables: 0)
    with pytest.raises(SystemExit):
        run_command(Request(rocm="7.0"), output=str(tmp_path / "runs"), command=["true"], allow_unlocked=allow)
    assert seen["allow_unlocked"] is allow


@pytest.mark.parametrize(("rocm", "more"), [("7.0", " --allow-unlocked"), ("6.3", "")])
def test_dev_container_of_an_unlocked_cell_names_the_build_that_is_not_refused(on, capsys, tmp_path, rocm, more):
    on(sysfs.two_rx_7900_xt)
    run.devcontainer(Devcontainer(user="1234:567", rocm=rocm, to=str(tmp_path / "dev")))
    assert f"-gfx1100{more}\n" in capsys.readouterr().err


def test_dev_container_is_written_with_the_probes_of_this_host(on, capsys, tmp_path):
    on(sysfs.mi50)
    run.devcontainer(Devcontainer(user="1234:567", to=str(tmp_path / "dev")))
    text = (tmp_path / "dev" / "devcontainer.json").read_text()
    assert '"--group-add=109"' in text
    assert '"--probe=amp"' in text
    made = json.loads("".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))
    assert made["postCreateCommand"][:5] == ["python", "-P", "-m", "trainer", "smoke"]
    assert "PYTHONSAFEPATH" not in made["containerEnv"]  # what is developed there imports its own modules
    assert (tmp_path / "dev" / "Dockerfile").is_file()
    assert "for user 1234:567" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "code"), [("", None), ("0:0", None), ("1000:1000", None), ("1001:1001", "RM404"), ("1000:0", "RM404")]
)
def test_rootless_engine_runs_as_its_own_user_and_refuses_another(on, run_command, capsys, monkeypatch, typed, code):
    on(sysfs.strix_halo)
    monkeypatch.setattr(engine, "is_rootless", lambda: True)
    monkeypatch.setattr(interactive, "own_user", lambda: "1000:1000")
    with nullcontext() if code is None else pytest.raises(SystemExit):
        written = yaml.safe_load(run_command(OPEN, target="compose", user=typed).out)["services"]["train"]
        assert written["user"] == "0:0"
        assert "group_add" not in written
    assert (code or "") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "kind", "given"),
    [("podman", None, 2), ("docker", None, 1), ("devcontainer", None, 1), ("devcontainer", "podman", 2)],
)
def test_podman_without_root_is_given_the_cards_that_it_cannot_hide(on, run_command, monkeypatch, target, kind, given):
    monkeypatch.setattr(workplace, "rootless_engine", lambda: kind)
    on(sysfs.desktop_with_igpu)
    printed = run_command(OPEN, target=target).out
    assert len(set(re.findall(r"/dev/dri/renderD\d+", without_comments(printed)))) == given
    assert "ROCR_VISIBLE_DEVICES" in printed


@pytest.mark.parametrize(
    ("kind", "user", "number", "options"),
    [
        (None, "developer", "1000", ["--group-add=991"]),
        ("docker", "root", "0", []),
        ("podman", "developer", "1000", ["--userns=keep-id", "--group-add=keep-groups"]),
    ],
)
def test_development_container_has_a_user_who_can_write_the_workspace(
    on, run_command, monkeypatch, tmp_path, kind, user, number, options
):
    """Rootless Docker takes its user for root; podman keeps the number and the groups itself. No engine is asked."""
    monkeypatch.setattr(workplace, "rootless_engine", lambda: kind)
    monkeypatch.setattr(interactive, "own_user", lambda: "1000:1000")
    # rootless Docker hands no group on: its node is open to all
    on(
        sysfs.strix_halo if kind == "docker" else sysfs.mi50,
        render_gid=991,
        **({} if kind == "docker" else {"kfd_gid": 991}),
    )
    printed = without_comments(run_command(OPEN, target="devcontainer").out)
    run.devcontainer(Devcontainer(user="1000:1000", to=str(tmp_path / "dev")))
    for text in (printed, without_comments((tmp_path / "dev" / "devcontainer.json").read_text())):
        made = json.loads(text)
        assert (made["remoteUser"], made["build"]["args"]["DEVELOPER_UID"]) == (user, number)
        assert [row for row in made["runArgs"] if row.startswith(("--group-add", "--userns"))] == sorted(
            options, key=lambda row: not row.startswith("--userns")
        )


def test_development_container_of_a_rootless_docker_is_for_its_own_user_alone(on, capsys, monkeypatch, tmp_path):
    on(sysfs.strix_halo)
    monkeypatch.setattr(workplace, "rootless_engine", lambda: "docker")
    monkeypatch.setattr(interactive, "own_user", lambda: "1000:1000")
    with pytest.raises(SystemExit):
        run.devcontainer(Devcontainer(user="1001:1001", to=str(tmp_path / "dev")))
    assert "RM404" in capsys.readouterr().err
    assert not (tmp_path / "dev").exists()


def test_podman_keeps_the_users_number_whatever_the_engine(on, run_command, monkeypatch):
    on(sysfs.strix_halo)
    monkeypatch.setattr(engine, "is_rootless", lambda: True)
    assert "--user=1000:1000" in run_command(OPEN, target="podman").out


def test_simulated_machine_is_the_one_that_a_command_runs_on_and_a_recording_comes_before_it(
    run_command, tmp_path, monkeypatch
):
    """Both machines are SYNTHETIC; a dry run."""
    two = sysfs.two_rx_7900_xt(tmp_path / "two").root
    monkeypatch.setenv("ROCMATRIX_SIMULATED", str(two))
    printed = run_command(OPEN, dry_run=True, user="0:0")
    assert "SIMULATED machine" in printed.err
    assert f"{two}/dev/dri/renderD129" in printed.out
    assert "simulated-rocm" in printed.out
    recorded = run_command(OPEN, dry_run=True, user="0:0", sysfs=str(sysfs.mi50(tmp_path / "one").root))
    assert "gfx906" in recorded.out
    assert str(two) not in recorded.out
