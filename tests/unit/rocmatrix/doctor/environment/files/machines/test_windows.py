"""Scripts of Windows: variables and installs of batch files and PowerShell, each at its line."""

import pytest

from rocmatrix.doctor.environment.files.machines import windows


def read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return windows.of_windows(path)[0]


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("set A_B=0", "0"),
        ('set A_B="0"', '"0"'),
        ('set "A_B=0"', "0"),
        ('SETX a_b "0" >nul 2>&1', "0"),
        ("if exist x (set A_B=0)", "0"),
        ("set A_B=%C_D%,1", "${C_D},1"),
        ('$env:A_B = "0"', "0"),
        ("[Environment]::SetEnvironmentVariable('A_B', '0', 'User')", "0"),
    ],
)
def test_variable_has_its_value_and_line(tmp_path, row, value):
    (found,) = read(tmp_path, "a.bat", f":: set A_B=9\n{row}\n").variables
    assert (found.name, found.value, found.where.rpartition(":")[2]) == ("A_B", value, "2")


def test_install_over_several_lines_is_one_command(tmp_path):
    found = read(tmp_path, "a.bat", "echo.\nvenv\\Scripts\\python.exe -m pip install ^\n  torch ^\n  numpy\n")
    assert [(one.text.split(), one.where.rpartition(":")[2]) for one in found.commands] == [
        (["venv/Scripts/python.exe", "-m", "pip", "install", "torch", "numpy"], "2")
    ]


def test_other_lines_set_and_install_nothing(tmp_path):
    found = read(tmp_path, "a.ps1", "# $env:A = 'b'\nWrite-Host 'pip install torch'\nset-location x\n")
    assert not found.variables
    assert not found.commands
