"""What a person brings to a run: variables whose values are written nowhere, ports on the loopback, folders to read."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.cli.commands.run import Run
from rocmatrix.containers import caller_settings, emit
from rocmatrix.containers.emit import target as targets
from rocmatrix.containers.emit.target import Host
from rocmatrix.containers.settings import Mount, Port
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import interactive as session
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs

SECRET = "hf_aVerySecretToken0123456789"


@pytest.fixture
def spec_of(tmp_path):
    """Return a function: options of `run` to the spec and the options themselves, on a machine without a card."""

    def spec_of(**typed):
        options = Run(user="1000:1000", output=str(tmp_path / "training"), **typed)
        chosen = options.chosen(("python", "/code/mine.py"))
        return options, session.spec_for(
            chosen, cell=cells.CPU, hardware=read_hardware(sysfs.no_driver(tmp_path / "m"))
        )

    return spec_of


def env_file(tmp_path, text):
    path = tmp_path / "my.env"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_file_of_variables_is_read_as_a_shell_takes_it(tmp_path):
    path = env_file(tmp_path, "# mine\n\nexport A=\"one two\"\r\nB='#x=y'\nC =  3  \nHERE\nD=\n")
    found = caller_settings.variables(["C=4", "E=a=b"], path, here={"HERE": "from the shell"})
    assert found == {"A": "one two", "B": "#x=y", "C": "4", "HERE": "from the shell", "D": "", "E": "a=b"}


@pytest.mark.parametrize("inside", ["\u2028", "\x0c", "\x85", "\x1c", "\x0b"])
def test_line_of_a_file_ends_where_it_does_for_a_shell(tmp_path, inside):
    path = env_file(tmp_path, f"A=one{inside}HERE\nB=2\n")
    assert caller_settings.variables([], path, here={"HERE": SECRET}) == {"A": f"one{inside}HERE", "B": "2"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('A="x" # note', "x"),
        (r'A="a\"b"', 'a"b'),
        (r"A='it'\''s'", "it's"),
        ("A=x # note", "x"),
        ("A=a#b", "a#b"),
        ("A='x'y", "xy"),
        ("A='$HOME'", "$HOME"),
        ("export\tA=1", "1"),
        ('A={"k": "v w"}', '{"k": "v w"}'),
    ],
)
def test_value_of_a_line_is_the_one_of_a_shell(tmp_path, line, value):
    assert caller_settings.variables([], env_file(tmp_path, line), here={}) == {"A": value}


@pytest.mark.parametrize(
    ("typed", "text", "where"),
    [
        ([f"2A={SECRET}"], "", "--env, number 1"),
        (["A=1", f"{SECRET[:3]} x={SECRET}"], "", "--env, number 2"),
        (["NOT_SET_ANYWHERE"], "", "--env, number 1"),
        ([f"KEY={SECRET}\nmore"], "", "--env, number 1"),
        ([f"KEY={SECRET}\udcff"], "", "--env, number 1"),
        ([], f'A="{SECRET}', "my.env:1"),
        ([], f"A='{SECRET}' more", "my.env:1"),
        ([], f"A=1\n{SECRET}-key={SECRET}\n", "my.env:2"),
        ([], b"A=\xff\xfe\n", "my.env"),
    ],
)
def test_variable_that_cannot_be_passed_is_rm111_without_its_value(tmp_path, typed, text, where):
    with pytest.raises(RocmatrixError) as refused:
        caller_settings.variables(typed, env_file(tmp_path, text) if text else None, here={})
    assert refused.value.code == "RM111"
    assert refused.value.where.endswith(where)
    assert SECRET not in refused.value.render()


def test_file_that_is_not_there_is_rm111(tmp_path):
    with pytest.raises(RocmatrixError, match="RM111"):
        caller_settings.variables([], tmp_path / "absent.env")


def test_pipe_without_a_writer_has_no_variables_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.env")
    assert caller_settings.variables([], tmp_path / "pipe.env") == {}


@pytest.mark.parametrize(
    "name", [name for name, each in targets.known().items() if not each.host_alone and name != "docker-sdk"]
)
def test_target_of_a_run_with_a_secret_holds_its_name_alone(spec_of, tmp_path, name):
    options, spec = spec_of(env=[f"HF_TOKEN={SECRET}"], env_file=str(env_file(tmp_path, f"OTHER={SECRET}")))
    host = Host(hardware=read_hardware(sysfs.no_driver(tmp_path / "m")))
    text = targets.target(name).text(spec, host)
    rows = targets.target(name).rows(spec, host)
    assert SECRET not in text + repr(rows) + repr(spec) + repr(vars(spec))
    assert "HF_TOKEN" in text
    assert "OTHER" in text
    assert options.variables == {"OTHER": SECRET, "HF_TOKEN": SECRET}


def test_sdk_arguments_of_a_run_with_variables_are_refused(spec_of):
    with pytest.raises(RocmatrixError) as refused:
        emit.docker_sdk_arguments(spec_of(env=[f"HF_TOKEN={SECRET}"])[1])
    assert refused.value.code == "RM111"
    assert "HF_TOKEN" in refused.value.what
    assert "--for compose" in refused.value.render()
    assert SECRET not in refused.value.render()


def test_compose_file_of_an_empty_variable_takes_its_empty_value(spec_of):
    spec = spec_of(env=["EMPTY="])[1]
    assert "${EMPTY?" in emit.compose_file(spec)
    assert "${EMPTY:?" not in emit.compose_file(spec)


CLIENT = """#!{python}
import json, os, sys
files = [word.partition("=")[2] for word in sys.argv if word.startswith("--env-file=")]
record = {{"argv": sys.argv, "read": [open(file).read() for file in files], "env": dict(os.environ)}}
open({out!r}, "w").write(json.dumps(record))
"""


def test_engines_client_gets_the_values_and_its_command_line_does_not(spec_of, tmp_path, monkeypatch):
    client, out = tmp_path / "bin" / "docker", tmp_path / "said.json"
    client.parent.mkdir()
    client.write_text(CLIENT.format(python=sys.executable, out=str(out)))
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{client.parent}{os.pathsep}{os.environ['PATH']}")
    options, spec = spec_of(env=[f"HF_TOKEN={SECRET}", "HOME=/elsewhere"])
    own_words = ["--env=HF_TOKEN", "run", "--env=HF_TOKEN"]
    argv = [*session.attached_argv(spec), *own_words]
    assert session.attached(argv, variables=options.variables) == 0
    recorded = json.loads(out.read_text())
    assert recorded["read"] == [f"HF_TOKEN={SECRET}\nHOME=/elsewhere\n"]
    assert recorded["argv"][-len(own_words) :] == own_words
    assert recorded["argv"].count("--env=HF_TOKEN") == 2
    assert SECRET not in json.dumps(recorded["argv"]) + json.dumps(recorded["env"])
    assert not [word for word in recorded["argv"] if word.startswith("--env=HOME")]
    assert recorded["env"]["HOME"] == os.environ["HOME"]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != out]
    assert not [path for path in written if SECRET in path.read_text(errors="replace")]


@given(st.integers(1, 65535), st.integers(1, 65535))
def test_ports_are_published_on_the_loopback_alone(host, inside):
    (port,) = caller_settings.ports([f"{host}:{inside}"])
    assert (port.flag, port.value) == ("--publish", f"127.0.0.1:{host}:{inside}")
    assert caller_settings.ports([str(inside), str(inside)])[0].value == f"127.0.0.1:{inside}:{inside}"


@pytest.mark.parametrize("typed", ["0", "65536", "http", "0.0.0.0:80:80", "80:", "-1", "8888/udp", ""])
def test_port_that_is_not_a_number_is_rm112(typed):
    with pytest.raises(RocmatrixError, match="RM112"):
        caller_settings.ports([typed])


def test_published_port_brings_the_network_and_nothing_else_does(spec_of):
    spec = spec_of(port=["9999:8888"])[1]
    assert [row.value for row in spec.of(Port)] == ["127.0.0.1:9999:8888"]
    argv = emit.docker_run_argv(spec)
    assert "--network=bridge" in argv
    assert "--publish=127.0.0.1:9999:8888" in argv
    assert "--network=none" in emit.docker_run_argv(spec_of()[1])


def test_data_and_code_are_mounted_to_be_read(spec_of, tmp_path):
    for name in ("es.csv", "vix.csv"):
        (tmp_path / name).touch()
    (tmp_path / "mine").mkdir()
    options = {"data": [str(tmp_path / "es.csv"), str(tmp_path / "vix.csv")], "code": str(tmp_path / "mine")}
    mounts = {m.target: m.read_only for m in spec_of(**options)[1].of(Mount)}
    assert [mounts[place] for place in ("/data/es.csv", "/data/vix.csv", "/code")] == [True, True, True]
    mounts = {m.target: m.read_only for m in spec_of(**options, code_writable=True)[1].of(Mount)}
    assert [mounts[place] for place in ("/data/es.csv", "/data/vix.csv", "/code")] == [True, True, False]


def test_two_files_of_one_name_and_what_is_not_there_are_rm404(spec_of, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bars.csv").touch()
    with pytest.raises(RocmatrixError, match=r"have the name bars\.csv"):
        spec_of(data=[str(tmp_path / "a" / "bars.csv"), str(tmp_path / "b" / "bars.csv")])
    for options in ({"data": [str(tmp_path / "none")]}, {"code": str(tmp_path / "a" / "bars.csv")}):
        with pytest.raises(RocmatrixError, match="RM404"):
            spec_of(**options)


def test_dry_run_as_it_is_typed_prints_no_secret(tmp_path):
    path = env_file(tmp_path, f"OTHER={SECRET}\n")
    argv = ["./invokew", "run", "--gpu=cpu", f"--env=HF_TOKEN={SECRET}", f"--env-file={path}", "--port=8888"]
    done = subprocess.run(
        [*argv, "--dry-run", "--", "jupyter", "lab", "--ip=0.0.0.0"],
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "--env=HF_TOKEN" in done.stdout
    assert "--publish=127.0.0.1:8888:8888" in done.stdout
    assert SECRET not in done.stdout + done.stderr
