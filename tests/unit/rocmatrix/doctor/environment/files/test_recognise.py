"""Which form a file has."""

import pytest

from rocmatrix.doctor.environment.files import recognise


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile.rocm", "FROM a\n"),
        ("base.Dockerfile.j2", "{% if a %}\nFROM a\n{% endif %}\n"),
        ("x.yml", "services: {a: {image: b}}\n"),
        ("run", "#!/bin/sh\nls\n"),
    ],
)
def test_file_is_recognised_by_name_or_form(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert recognise.subjects(tmp_path / name, shell={})
