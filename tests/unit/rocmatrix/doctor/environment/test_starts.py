"""Starts on an AMD card: groups by name, drivers of another maker, tags that move, users without groups."""

import pytest

from rocmatrix.doctor.environment import compose, dockerfile
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import Command, Subject
from rocmatrix.doctor.environment.starts import found, needs_shared_memory


def rules(subject):
    return [(one.rule, one.severity) for one in found(subject)]


def started(image="a", **given):
    launch = Launch(image=image, where="a:1", devices=("/dev/kfd",), **given)
    return Subject(name="a service b", image=image, where="a:1", launch=launch)


@pytest.mark.parametrize(
    ("image", "moves"),
    [
        ("rocm/pytorch", True),
        ("rocm/pytorch:latest", True),
        ("docker.io/me/app-rocm:main", True),
        ("rocm/pytorch:rocm6.4.1_ubuntu22.04_py3.10_pytorch_release_2.6.0", False),
        ("rocm/pytorch@sha256:00", False),
        ("rocm/pytorch:$TAG", False),
        ("python", False),
        ("app-rocm", False),
        ("app-rocm:latest", True),
        ("local:5000/rocm/app:1", False),
        ("rocm/pytorch:latest-base", True),
        ("ghcr.io/me/app-rocm:master", True),
        ("me/app-rocm:stable", True),
        ("ollama/ollama-amd:rocm", True),
        ("rocm/vllm-dev:instinct_main", True),
        ("me/app-rocm:v2", False),
        ("rocm/vllm:rocm6.4-latest", True),
        ("rocm/vllm-dev:nightly_main_20250601", False),
        ("rocm/dev-ubuntu-24.04:6.4-complete", False),
        ("me/app-rocm:main-5f2c1d0", False),
    ],
)
def test_tag_that_moves_is_a_note(image, moves):
    subject = Subject(name="a", image=image, where="a:1")
    assert rules(subject) == ([("image-moves", "note")] if moves else [])


def test_tag_that_moves_is_reported_where_the_image_is_named():
    assert [row.where for row in found(Subject(name="a", image="rocm/a", where="a:3"))] == ["a:3"]
    launch = Launch(image="rocm/a", where="a:4", devices=("/dev/kfd",))
    assert [row.where for row in found(Subject(name="a", image="rocm/a", launch=launch))] == ["a:4"]


@pytest.mark.parametrize(
    ("image", "moves"),
    [("ghcr.io/me/app-rocm:main", True), ("app-rocm:latest", False), ("localhost/app-rocm:latest", False)],
)
def test_tag_that_moves_is_reported_of_an_image_that_is_pulled_before_it_is_built(tmp_path, image, moves):
    (tmp_path / "Dockerfile").write_text("FROM rocm/dev-ubuntu-24.04:6.4\n")
    path = tmp_path / "compose.yaml"
    path.write_text(f"services:\n  a:\n    build: .\n    image: {image}\n")
    (service,) = compose.of_compose(path, shell={})
    assert [(row.rule, row.what, row.where) for row in found(service)] == (
        [("image-moves", image, f"{path}:4")] if moves else []
    )


def test_group_by_name_fails_in_images_without_it():
    assert rules(started("ollama/ollama:0.9", groups=("44", "render"))) == [("group-by-name", "warning")]
    assert rules(started("me/app:1", groups=("render",))) == [("group-by-name", "note")]
    assert rules(started("rocm/pytorch:a1", groups=("render",))) == []
    assert rules(started("me/app:1", groups=("44", "992"))) == []
    assert rules(started("me/app:1", groups=("render",), privileged=True)) == []


def test_user_with_video_alone_cannot_open_the_nodes():
    assert rules(started("me/app:1", groups=("video",), user="1000")) == [("render-group-missing", "warning")]
    assert rules(started("me/app:1", groups=("video",))) == [("render-group-missing", "note")]  # its user is not known
    assert rules(started("me/app:1", groups=("video",), user="0")) == []
    assert rules(started("me/app:1", groups=("video", "$RENDER"))) == []
    assert rules(started("me/app:1", groups=("video",), partial=True)) == []
    assert rules(started("me/app:1", groups=("video", "992"), user="1000")) == []
    assert rules(started("me/app:1", groups=("keep-groups",), user="1000")) == []


def test_number_of_a_group_is_that_of_one_host(tmp_path):
    path = tmp_path / "compose.yaml"
    text = "services:\n  a:\n    image: me/app:1\n    devices: [/dev/kfd]\n    group_add:\n      - {}\n      - 992\n"
    for one, expected in (('"44"', "group 44 992"), ("$VIDEO_GID", "group 992")):
        path.write_text(text.format(one))
        (note,) = found(compose.of_compose(path, shell={"VIDEO_GID": "44"})[0])
        assert (note.rule, note.severity, note.what) == ("group-number-of-one-host", "note", expected)
        assert note.where == f"{path}:6"
    path.write_text(text.format("$VIDEO_GID").replace("992", "${RENDER_GID:-992}"))
    assert rules(compose.of_compose(path, shell={})[0]) == []


def test_number_of_a_group_counts_in_a_privileged_container_too():
    assert rules(started(groups=("992",), fixed_groups=("992",), privileged=True)) == [
        ("group-number-of-one-host", "note")
    ]
    assert rules(started(groups=("992",), fixed_groups=())) == []


def test_size_of_shared_memory_has_no_effect_with_that_of_the_host():
    both = {"shared_memory": "8g", "ipc": "host"}
    assert rules(started(**both)) == [("shm-size-without-effect", "note")]
    assert rules(started(shared_memory="8g")) == rules(started(ipc="host")) == []
    assert rules(started(shared_memory="8g", ipc="shareable")) == []


@pytest.mark.parametrize(
    ("volume", "given", "expected"),
    [
        ("/dev/dri:/dev/dri", {}, [("device-as-volume", "error")]),
        ("/dev/dri:/dev/dri", {"privileged": True}, []),
        ("/dev/dri:/dev/dri", {"partial": True}, []),
        ("/dev/kfd:/dev/kfd", {}, []),  # it is among the devices as well
        ("/opt/rocm:/opt/rocm", {}, [("rocm-of-the-host", "note")]),
        ("/opt/rocm-6.4.1/:/opt/rocm:ro", {}, [("rocm-of-the-host", "note")]),
        ("/opt/rocm/share/doc:/doc", {}, []),
        ("models:/models", {}, []),
    ],
)
def test_volume_is_no_device_and_no_rocm(volume, given, expected):
    assert rules(started(volumes=(volume,), **given)) == expected


def test_image_of_rocm_is_built_for_one_processor():
    findings = [("platform-without-rocm", "error")]
    assert rules(started("rocm/pytorch:a1", platform="linux/arm64")) == findings
    assert rules(started("rocm/pytorch:a1", platform="linux/amd64")) == []
    assert rules(started("me/app:1", platform="linux/arm64")) == []


def test_image_of_rocm_that_is_an_argument_of_a_build_moves_too(tmp_path):
    path = tmp_path / "compose.yaml"
    text = "services:\n  a:\n    build:\n      context: x\n      args:\n        {}\n"
    for argument, moves in (
        ("BASE: rocm/pytorch", True),
        ("- BASE=rocm/vllm:latest", True),
        ("BASE: rocm/vllm:1", False),
    ):
        path.write_text(text.format(argument))
        notes = [note for one in compose.of_compose(path, shell={}) for note in found(one)]
        assert [(note.rule, note.where) for note in notes] == ([("image-moves", f"{path}:6")] if moves else [])


def test_driver_of_another_maker_is_an_error():
    assert rules(started(drivers=("nvidia",))) == [("driver-of-another-maker", "error")]
    assert rules(started(drivers=("rocm",))) == [("driver-of-another-maker", "error")]
    assert rules(started(drivers=("amd",))) == rules(started(drivers=("cdi",))) == []
    plain = Subject(name="a", image="a:1", launch=Launch(image="a:1", where="a:1", drivers=("nvidia",)))
    assert rules(plain) == []


def test_servers_need_no_shared_memory():
    assert not needs_shared_memory("ollama/ollama:rocm")
    assert needs_shared_memory("rocm/pytorch:a")


def test_user_of_a_dockerfile_is_in_no_group_until_it_is_added(tmp_path):
    path = tmp_path / "Dockerfile.rocm"
    for text, expected in (
        ("FROM rocm/dev-ubuntu-24.04:6.4\nUSER me\n", ["user-without-groups"]),
        ("FROM rocm/dev-ubuntu-24.04:6.4\nRUN usermod -aG render,video me\nUSER me\n", []),
        ("FROM rocm/dev-ubuntu-24.04:6.4\nUSER me\nUSER root\n", []),
        ("FROM rocm/dev-ubuntu-24.04:6.4 AS a\nUSER me\nFROM a\nUSER 0\n", ["user-without-groups"]),
    ):
        path.write_text(text)
        assert [one.rule for stage in dockerfile.of_dockerfile(path) for one in found(stage)] == expected
    assert rules(Subject(name="Dockerfile stage 0", user="me", commands=(Command(text="a", where="a:1"),))) == []


def test_service_takes_user_and_image_of_the_dockerfile_that_it_is_built_from(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "D").write_text("FROM rocm/dev-ubuntu-24.04:6.4 AS run\nUSER 101\nFROM python:3.12 AS test\n")
    path = tmp_path / "compose.yaml"
    text = (
        "services:\n  a:\n    build: {context: sub, dockerfile: D, target: run}\n    devices: [/dev/kfd]\n"
        "    group_add: [video]\n    deploy: {resources: {reservations: {devices: [{driver: rocm, count: 1}]}}}\n"
        "  b:\n    build: absent\n    runtime: nvidia\n    image: b:1\n"
    )
    path.write_text(text)
    one, other = compose.of_compose(path, shell={})
    assert (one.image, one.user, one.launch.drivers) == ("rocm/dev-ubuntu-24.04:6.4", "101", ("rocm",))
    assert rules(one) == [("driver-of-another-maker", "error"), ("render-group-missing", "warning")]
    assert (other.image, other.user, other.launch.image, other.launch.drivers) == (None, None, "b:1", ("nvidia",))
