"""The host's trouble is known by the error's kind and code, never by its words."""

import errno

import docker.errors
import pytest
import requests
import urllib3.exceptions

from rocmatrix.evidence import host_failure
from rocmatrix.runtime.errors import RocmatrixError


def coded(code):
    return RocmatrixError(code, what="simulated")


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        *((coded(code), "engine") for code in ("RM201", "RM221", "RM650", "RM651")),
        *((coded(code), "registry") for code in ("RM104", "RM204")),
        *((coded(code), "disk") for code in ("RM205", "RM206")),
        *((OSError(number, "simulated"), "disk") for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)),
        (KeyboardInterrupt(), "signal"),
        (docker.errors.DockerException("simulated"), "engine"),
        (requests.ConnectionError("simulated"), "engine"),
        (requests.Timeout("simulated"), "engine"),
        (urllib3.exceptions.ProtocolError("simulated"), "engine"),
        (ConnectionResetError(errno.ECONNRESET, "simulated"), "engine"),
        (TimeoutError("simulated"), "engine"),
        # of the cell, or of this program:
        (coded("RM202"), None),
        (coded("RM208"), None),
        (FileNotFoundError(errno.ENOENT, "simulated"), None),
        (PermissionError(errno.EACCES, "simulated"), None),
        (ValueError("RM201 no space left on device"), None),
        (SystemExit(1), None),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_trouble_of_an_error_is_of_its_stage_or_none(error, stage):
    found = host_failure.of(error)
    assert (found.stage if found else None) == stage
    assert found is None or found.words == str(error)


def test_words_of_an_error_longer_than_a_record_takes_are_cut():
    found = host_failure.of(OSError(errno.ENOSPC, "w" * 5000))
    assert found is not None
    assert len(found.words) == 4000
