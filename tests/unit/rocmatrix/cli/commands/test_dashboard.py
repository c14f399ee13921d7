"""What `./invokew dashboard` says of a place it cannot write and a port it cannot take."""

import errno
import os
import socket

import pytest

from rocmatrix.cli.commands import common
from rocmatrix.cli.commands import dashboard as command
from rocmatrix.cli.commands.dashboard import Dashboard
from tests.fixtures.cells import MATRIX


@pytest.fixture
def refusal(tmp_path, monkeypatch, capsys):
    """Return a function that writes a dashboard and returns what it printed of the mistake."""
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)

    def run(*, serve=False, port=0):
        with pytest.raises(SystemExit) as ended:
            command.dashboard(Dashboard(out=str(tmp_path / "pages"), serve=serve, port=port))
        assert ended.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_number_that_is_no_port_is_refused_before_anything_is_written(refusal, tmp_path, port):
    message = refusal(serve=True, port=port)
    assert message.startswith("RM404 ")
    assert str(port) in message
    assert "--port" in message
    assert not (tmp_path / "pages").exists()


def test_port_that_is_taken_is_named(refusal):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refusal(serve=True, port=port)
    assert "RM404 " in message
    assert f"127.0.0.1:{port}" in message
    assert "--port 0" in message


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, "RM205"), (errno.EROFS, "RM206")])
def test_failure_to_write_pages_names_folder_and_flag(refusal, tmp_path, monkeypatch, number, code):
    def fail(*_, **__):
        raise OSError(number, "for the test")  # as write() fails: without the file's name

    monkeypatch.setattr(os, "fsync", fail)
    message = refusal()
    assert message.startswith(code)
    assert f"where: {tmp_path / 'pages'}" in message
    assert "--out." in message
    assert "docker" not in message
