"""Packages of a distribution as dpkg lists them, in an engine's answer and between two images."""

import io
import tarfile
from types import SimpleNamespace

import docker.errors
import pytest

from rocmatrix.verify.distribution_packages import MOST_NAMED, moved, parse, read

LIST = """Package: gcc
Status: install ok installed
Version: 4:12.2.0-3
Description: a compiler
 Version: of no package

Package: gone
Status: deinstall ok config-files
Version: 1

Package: held
Status: hold ok installed
Version: 2
"""


def packed(text):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("status")
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def client(content=None, error=None):
    made = []

    def get_archive(_):
        if error:
            raise error
        return iter([content[:100], content[100:]]), {}

    def create(*words, **options):
        made.append(
            SimpleNamespace(get_archive=get_archive, remove=lambda force: made.append("removed"), options=options)
        )
        return made[0]

    return SimpleNamespace(containers=SimpleNamespace(create=create), made=made)


def test_installed_packages_are_read_and_those_that_were_removed_are_not():
    assert parse(LIST) == {"gcc": "4:12.2.0-3", "held": "2"}


def test_list_is_read_from_a_container_without_a_network_that_never_runs_and_goes():
    client_ = client(packed(LIST))
    assert read(client_, "sha256:1") == {"gcc": "4:12.2.0-3", "held": "2"}
    assert client_.made[0].options["network_mode"] == "none"
    assert client_.made[-1] == "removed"


@pytest.mark.parametrize("client_", [client(error=docker.errors.NotFound("no such file")), client(b"no archive" * 200)])
def test_image_without_a_list_has_no_packages(client_):
    assert read(client_, "sha256:1") == {}
    assert client_.made[-1] == "removed"


@pytest.mark.parametrize(
    ("held", "made", "words"),
    [
        ({"a": "1"}, {"a": "1"}, ""),
        ({"a": "1"}, {}, ""),  # nothing is known of the second
        ({"a": "1"}, {"a": "2"}, "the base's archive has moved on: a 1, built anew 2"),
        ({"a": "1"}, {"b": "2"}, "the base's archive has moved on: a 1, built anew (absent), b (absent), built anew 2"),
    ],
)
def test_packages_that_differ_are_named_with_both_versions(held, made, words):
    assert moved(held, made) == words


def test_long_list_is_cut_with_a_count():
    held, made = ({f"p{number:03}": version for number in range(MOST_NAMED + 3)} for version in "12")
    assert moved(held, made).endswith(f"p{MOST_NAMED - 1:03} 1, built anew 2 and 3 more")
