"""What podman is told differs from docker only where podman is different, and says so."""

import pytest

from rocmatrix.containers.emit import docker_options
from rocmatrix.containers.emit.podman import podman_rows, podman_run_argv
from rocmatrix.containers.runspec import portable_spec
from rocmatrix.containers.settings import Group
from tests.fixtures import cells


def options(spec, *, rootless=False, selinux=False):
    return {row.option for row in podman_rows(spec, rootless=rootless, selinux=selinux)}


def test_podman_run_by_root_gets_the_settings_of_docker_in_its_own_spelling(two_cards):
    _, spec = two_cards()
    docker = {*docker_options(spec), "--rm", "--pull=never"}
    assert options(spec) - docker == {"--security-opt=no-new-privileges", "--read-only-tmpfs=false"}
    assert docker - options(spec) == {"--security-opt=no-new-privileges:true"}


def test_rootless_run_keeps_the_users_groups_and_gives_no_number(two_cards):
    _, spec = two_cards(gid=109)
    (row,) = [row for row in podman_rows(spec, rootless=True, selinux=False) if row.flag == "--group-add"]
    assert row.value == "keep-groups"
    assert "109" in row.reason
    assert "--userns=keep-id" in options(spec, rootless=True)


def test_groups_are_not_kept_where_none_is_needed(two_cards):
    _, spec = two_cards()
    bare = type(spec)(cell="c", image="i", command=(), settings=tuple(s for s in spec.settings if type(s) is not Group))
    assert "--group-add=keep-groups" not in options(bare, rootless=True)


def test_labels_are_lifted_only_where_selinux_is_enforced(two_cards):
    _, spec = two_cards()
    assert options(spec, selinux=True) - options(spec) == {"--security-opt=label=disable"}


def test_rows_have_a_reason_and_a_source(two_cards):
    for row in podman_rows(two_cards()[1], rootless=True, selinux=True):
        assert row.reason.strip()
        assert row.source.strip()


def test_image_and_command_close_the_command_line(two_cards):
    _, spec = two_cards(entrypoint="bash", command=["-c", "id"])
    argv = podman_run_argv(spec, rootless=True, selinux=False)
    assert argv[:4] == ["podman", "run", "--rm", "--pull=never"]
    assert argv[-4:] == ["--entrypoint=bash", spec.image, "-c", "id"]


def test_portable_spec_is_no_command():
    with pytest.raises(ValueError, match="compose variables"):
        podman_run_argv(portable_spec(cells.GFX1100), rootless=True, selinux=False)
