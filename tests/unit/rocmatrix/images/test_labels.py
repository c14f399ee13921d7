"""The labels that a build writes, and what an image with such labels is set aside for."""

import subprocess

import pytest

import rocmatrix
from rocmatrix.host import simulated
from rocmatrix.images import labels
from rocmatrix.images.labels import OtherBase
from tests.fixtures import cells

DIGEST = "sha256:" + "d" * 64
NONE = {"stand-in": False, "simulated": False, "other-base": False, "unlocked": False, "forced": False}


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.delenv(simulated.VARIABLE, raising=False)
    monkeypatch.delenv(labels.STAND_IN_VARIABLE, raising=False)


def test_labels_of_a_plain_build_are_its_inputs_alone():
    assert labels.written(inputs="abc") == {"org.rocmatrix.inputs": "abc"}
    assert labels.written(inputs="abc", base="", base_id="") == {"org.rocmatrix.inputs": "abc"}


def test_labels_name_the_base_its_id_forced_rules_stand_ins_and_a_simulation(monkeypatch, tmp_path):
    monkeypatch.setenv("ROCMATRIX_STAND_IN", "wheels\nof no content")
    monkeypatch.setenv("ROCMATRIX_SIMULATED", str(tmp_path))
    assert labels.written(inputs="abc", base="m/u:1", base_id="sha256:1", forced=["a", "b"]) == {
        "org.rocmatrix.inputs": "abc",
        "org.rocmatrix.forced": "a,b",
        "org.rocmatrix.base": "m/u:1",
        "org.rocmatrix.base.id": "sha256:1",
        "org.rocmatrix.stand-in": "wheels of no content",
        "org.rocmatrix.simulated": "yes",
    }


@pytest.mark.parametrize(
    ("written", "mark"),
    [
        ({}, None),
        ({"org.rocmatrix.stand-in": "wheels"}, "stand-in"),
        ({"org.rocmatrix.stand-in": ""}, None),
        ({"org.rocmatrix.simulated": "yes"}, "simulated"),
        ({"org.rocmatrix.base": "m/u:1"}, "other-base"),
        ({"org.rocmatrix.base": f"m/u@{DIGEST}"}, None),
        ({"org.rocmatrix.base": ""}, None),
        ({"org.rocmatrix.base.id": "sha256:1"}, None),
        ({"org.rocmatrix.lock": "unlocked"}, "unlocked"),
        ({"org.rocmatrix.lock": "a" * 64}, None),
        ({"org.rocmatrix.forced": "a-rule"}, "forced"),
        ({"org.rocmatrix.forced": ""}, None),
    ],
)
def test_label_sets_an_image_aside_for_its_own_reason_alone(written, mark):
    assert labels.marks(written, own_digest=DIGEST) == NONE | ({mark: True} if mark else {})


@pytest.mark.parametrize(
    ("base", "digest", "own"),
    [
        (f"m/u@{DIGEST}", DIGEST, True),
        (f"m/u:1@{DIGEST}", DIGEST, True),
        (f"m/u{DIGEST}", DIGEST, False),
        (f"m/u@{DIGEST}x", DIGEST, False),
        ("m/u@None", None, False),
    ],
)
def test_base_is_the_cells_own_by_its_digest_alone(base, digest, own):
    assert labels.is_own(base, digest) is own


def test_labels_of_a_build_name_another_base_and_forced_rules():
    written = labels.of_build("abc", other=OtherBase(name="mirror/u:1", id="sha256:1"), forced=["a", "b"])
    assert written == {
        "org.rocmatrix.inputs": "abc",
        "org.rocmatrix.forced": "a,b",
        "org.rocmatrix.base": "mirror/u:1",
        "org.rocmatrix.base.id": "sha256:1",
    }
    assert labels.of_build("abc") == {"org.rocmatrix.inputs": "abc"}


@pytest.mark.parametrize(("id_", "counted"), [("sha256:1", "sha256:1"), (None, "m/u:1"), ("", "m/u:1")])
def test_base_counts_by_its_id_where_that_is_known(id_, counted):
    assert OtherBase(name="m/u:1", id=id_).counted == counted


OCI = "org.opencontainers.image."
KNOWN = {f"{OCI}version": rocmatrix.__version__}


def git(folder, *words):
    identity = ("-c", "user.name=a test", "-c", "user.email=a@test")
    subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "file").write_text("1")
    git(folder, "add", "file")
    git(folder, "commit", "--quiet", "--message=one")
    return folder


def commit(folder):
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_revision_is_the_commit_alone_where_nothing_differs(checkout):
    assert len(commit(checkout)) == 40
    assert labels.revision(checkout) == commit(checkout)


@pytest.mark.parametrize("name", ["file", "not-added"])
def test_revision_of_a_changed_or_larger_tree_is_dirty(checkout, name):
    (checkout / name).write_text("2")
    assert labels.revision(checkout) == f"{commit(checkout)}-dirty"


def test_revision_of_a_folder_within_another_repository_is_unknown(checkout, monkeypatch):
    inner = checkout / "copy"
    inner.mkdir()
    assert labels.revision(inner) is None
    monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))  # as within a hook of another repository
    assert labels.revision(inner) is None


def test_revision_of_a_tree_that_git_cannot_compare_is_unknown(checkout):
    (checkout / ".git" / "index").write_text("garbage")
    assert labels.revision(checkout) is None


def test_git_that_does_not_answer_within_a_minute_is_not_waited_for(checkout, monkeypatch):
    limits = []

    def stuck(argv, **given):
        limits.append(given["timeout"])
        raise subprocess.TimeoutExpired(argv, limits[-1])

    monkeypatch.setattr(subprocess, "run", stuck)
    assert (labels.source(checkout), labels.revision(checkout)) == (None, None)
    assert limits == [60, 60]


def test_revision_without_git_or_a_first_commit_is_unknown(tmp_path, monkeypatch):
    git(tmp_path, "init", "--quiet")
    (tmp_path / "HEAD").write_text("a file of that name is no commit")
    assert labels.revision(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert labels.revision(tmp_path) is None


@pytest.mark.parametrize(
    ("remote", "found"),
    [
        ("https://code.example/owner/name.git", "https://code.example/owner/name.git"),
        ("https://user:s3cret@code.example/owner/name", "https://code.example/owner/name"),
        ("https://user:s3@cret@code.example/owner/name", "https://code.example/owner/name"),
        ("https://user:s3/cret@code.example/owner/name", None),
        ("https://user:3/cret@code.example/owner/name", None),
        ("user:s3cret@code.example:owner/name", None),
        ("https://[::1]:8443/owner/name", "https://[::1]:8443/owner/name"),
        ("https://code.example/owner/name?token=s3cret", None),
        ("git@code.example:owner/name.git", "ssh://git@code.example/owner/name.git"),
        ("code.example:owner/name.git", "ssh://code.example/owner/name.git"),
        ("git@code.example:/srv/name.git", "ssh://git@code.example/srv/name.git"),
        ("ssh://git@code.example:2222/owner/name", "ssh://code.example:2222/owner/name"),
        ("/srv/git/name.git", None),
        ("../name:old", None),
        ("C:\\name", None),
        ("file:///srv/git/name.git", None),
    ],
)
def test_source_is_the_remotes_address_without_a_password_or_absent(checkout, remote, found):
    git(checkout, "remote", "add", "origin", remote)
    assert labels.source(checkout) == found


def test_source_without_a_remote_is_absent(checkout):
    assert labels.source(checkout) is None


def test_describing_labels_name_the_cells_own_base_with_its_digest(checkout):
    base = cells.GFX1100.base
    assert base.digest
    found = labels.describing(base, checkout)
    assert found == KNOWN | {
        f"{OCI}revision": commit(checkout),
        f"{OCI}base.name": "ubuntu:24.04",
        f"{OCI}base.digest": base.digest,
    }


def test_describing_labels_leave_out_what_is_unknown(tmp_path):
    assert cells.CPU.base.digest is None
    assert labels.describing(cells.CPU.base, tmp_path) == KNOWN | {f"{OCI}base.name": "debian:bookworm-slim"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mirror/u:1", {f"{OCI}base.name": "mirror/u:1"}),
        (f"mirror/u:1@{DIGEST}", {f"{OCI}base.name": "mirror/u:1", f"{OCI}base.digest": DIGEST}),
        ("mirror/u@sha256:short", {f"{OCI}base.name": "mirror/u"}),
    ],
)
def test_describing_labels_name_another_base_and_never_the_own_ones_digest(tmp_path, name, expected):
    assert labels.describing(cells.GFX1100.base, tmp_path, OtherBase(name=name)) == KNOWN | expected


def test_labels_of_another_base_are_not_inherited_as_the_images_own(tmp_path):
    carried = frozenset({f"{OCI}revision", f"{OCI}version", f"{OCI}authors"})
    found = labels.describing(cells.CPU.base, tmp_path, OtherBase(name="m/u:1", describes=carried))
    assert found == KNOWN | {f"{OCI}revision": "", f"{OCI}base.name": "m/u:1"}
