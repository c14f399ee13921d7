"""`test --mutants` takes a module alone."""

import subprocess
from types import SimpleNamespace

import pytest

from rocmatrix.cli.commands import project
from rocmatrix.images import native_env


@pytest.mark.parametrize(
    "others",
    [
        {"mutants": True, "paths": "tests"},
        {"mutants": True, "only": "clip"},
        {"mutants": True, "room": "trainer/engine"},
        {"module": "rocmatrix/matrix/rule.py"},
    ],
)
def test_mutants_with_another_choice_of_tests_is_rm404(others, capsys):
    with pytest.raises(SystemExit) as ended:
        project.test(project.Test(**others))
    assert ended.value.code
    assert "RM404" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "named"), [("", []), ("rocmatrix/matrix/rule.py", ["rocmatrix/matrix/rule.py"])])
def test_mutants_run_in_the_environment_of_the_tests_and_end_with_its_status(module, named, monkeypatch):
    ran = []
    monkeypatch.setattr(native_env, "prepare", lambda *_, **__: SimpleNamespace(python="python"))
    monkeypatch.setattr(native_env, "install_requirements", lambda root, name: ran.append(name))
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: ran.append(argv) or SimpleNamespace(returncode=3))
    with pytest.raises(SystemExit) as ended:
        project.test(project.Test(mutants=True, module=module))
    assert ended.value.code == 3
    argv = ["python", "-m", "benchmarks.mutants", *(["--module", *named] if named else [])]
    assert ran == ["dev", argv]
