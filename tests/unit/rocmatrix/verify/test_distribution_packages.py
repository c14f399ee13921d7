"""Packages of a distribution as dpkg lists them, in an engine's answer and between two images."""

import io
import tarfile
from types import SimpleNamespace

import docker.errors
import pytest

from rocmatrix.containers import orphan_cleanup
from rocmatrix.verify.distribution_packages import MOST_NAMED, moved, parse, read
from rocmatrix.verify.files.dpkg import STATUS

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

Package: without-version
Status: install ok installed

Package: without-status
Version: 3
"""


def packed(content, *, kind=tarfile.REGTYPE):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("status")
        member.size, member.type = len(content), kind
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


EMPTY = bytes(2 * tarfile.RECORDSIZE)  # an archive of no member
FOLDER = packed(b"", kind=tarfile.DIRTYPE)


def client(content=None, error=None):
    made = []

    def get_archive(path):
        assert path == STATUS
        if error:
            raise error
        return iter([content[:100], content[100:]]), {}

    def create(*words, **options):
        made.append(
            SimpleNamespace(
                get_archive=get_archive,
                remove=lambda force: made.append(("removed", force)),
                words=words,
                options=options,
            )
        )
        return made[0]

    return SimpleNamespace(containers=SimpleNamespace(create=create), made=made)


def test_installed_packages_are_read_and_those_that_were_removed_are_not():
    assert parse(LIST) == {"gcc": "4:12.2.0-3", "held": "2"}


def test_list_is_read_from_a_container_without_a_network_that_never_runs_and_goes():
    client_ = client(packed(LIST.encode()))
    assert read(client_, "sha256:1") == {"gcc": "4:12.2.0-3", "held": "2"}
    assert client_.made[0].words == ("sha256:1", ["true"])
    assert client_.made[0].options == {"entrypoint": [], "network_mode": "none", "labels": orphan_cleanup.label()}
    assert client_.made[-1] == ("removed", True)


def test_list_of_another_encoding_is_read_as_far_as_it_can_be():
    text = b"Package: gcc\nStatus: install ok installed\nVersion: 4\xff\n"
    assert read(client(packed(text)), "sha256:1") == {"gcc": "4\ufffd"}


@pytest.mark.parametrize(
    "client_",
    [
        client(error=docker.errors.NotFound("no such file")), client(b"no archive" * 200), client(EMPTY),
        client(FOLDER),
    ],
)  # fmt: skip
def test_image_without_a_list_has_no_packages(client_):
    assert read(client_, "sha256:1") == {}
    assert client_.made[-1] == ("removed", True)


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
    held, made = ({name: packages[name] for name in list(packages)[:MOST_NAMED]} for packages in (held, made))
    assert moved(held, made).endswith(f"p{MOST_NAMED - 1:03} 1, built anew 2")
