"""What a script appends to the files of later shells is examined as what it sets."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.scripts import of_file
from rocmatrix.doctor.environment.shell.profiles import appended


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("echo 'export HSA_OVERRIDE_GFX_VERSION=12.0.0' >> ~/.bashrc", [("HSA_OVERRIDE_GFX_VERSION", "12.0.0")]),
        ('echo "HIP_VISIBLE_DEVICES=0" | sudo tee -a /etc/environment', [("HIP_VISIBLE_DEVICES", "0")]),
        ("echo 'export A=1' >> $HOME/.profile && echo 'export B=2' >> ~/.zshrc", [("A", "1"), ("B", "2")]),
        ("echo 'export A=1' > /etc/profile.d/rocm.sh", [("A", "1")]),
        ("grep -q A ~/.bashrc || echo export A=1 >> ~/.bashrc", [("A", "1")]),
        ("printf 'export A=1\\n' >> ~/.profile", [("A", "1")]),
        ("echo A=1; echo done >> ~/.profile", []),
        ("echo 'export A=1'", []),
        ("echo 'export A=1' >> notes.txt", []),
        ("echo 'A is set' >> ~/.bashrc", []),
    ],
)
def test_variable_that_is_appended_to_a_profile_is_read_with_its_value(tmp_path, line, found):
    assert [(row.name, row.value) for row in appended(Command(text=line, where="a:1"))] == found
    path = tmp_path / "setup.sh"
    path.write_text(f"#!/bin/bash\n{line}\n")
    rows = [(row.name, row.value, row.where) for one in of_file(path) for row in one.variables]
    assert rows == [(name, value, f"{path}:2") for name, value in found]
