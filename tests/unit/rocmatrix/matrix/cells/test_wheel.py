"""Wheel files with their hashes: name and version are those of the file's name."""

import pytest
from pydantic import ValidationError

from rocmatrix.matrix.cells.wheel import Hashes
from tests.fixtures.cells import MATRIX

DIGEST = "a" * 64


def hashes(*files, digest=DIGEST):
    about = {"index": "python", "sources": ["the index of Python packages"], "confidence": CONFIDENCE}
    return Hashes.model_validate(about | {"sha256": dict.fromkeys(files, digest)})


CONFIDENCE = next(iter(MATRIX.cells)).release.evidence.confidence


@pytest.mark.parametrize(
    ("file", "name", "version"),
    [
        ("torch-2.7.1+rocm6.3-cp312-cp312-manylinux_2_28_x86_64.whl", "torch", "2.7.1+rocm6.3"),
        ("MarkupSafe-3.0.2-cp312-cp312-linux_x86_64.whl", "markupsafe", "3.0.2"),
        ("typing_extensions-4.15.0-py3-none-any.whl", "typing-extensions", "4.15.0"),
    ],
)
def test_wheel_has_name_and_version_of_its_file(file, name, version):
    ((found, wheel),) = hashes(file).wheels()
    assert (found, wheel.name, wheel.version, wheel.sha256) == (file, name, version, DIGEST)
    assert (wheel.index, wheel.sources) == ("python", ["the index of Python packages"])


@pytest.mark.parametrize(
    "file", ["torch.whl", "torch-2.7.1.tar.gz", "torch-x-py3-none-any.whl", "a/b-1-py3-none-any.whl"]
)
def test_file_that_is_no_wheel_is_refused(file):
    with pytest.raises(ValidationError, match="sha256"):
        hashes(file)


@pytest.mark.parametrize("digest", ["", "a" * 63, "g" * 64])
def test_digest_that_is_none_is_refused(digest):
    with pytest.raises(ValidationError, match="sha256"):
        hashes("a-1-py3-none-any.whl", digest=digest)
