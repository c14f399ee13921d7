"""A night removes what nights made. Images of others stay, whatever labels and layers they inherited."""

from types import SimpleNamespace

import docker.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.nightly import disk
from rocmatrix.nightly.disk import OWN_TAGS, Held, own, prune_argv, to_remove

TAGS = st.sampled_from([f"{OWN_TAGS}a", f"{OWN_TAGS}b", "rocmatrix:a", "mine:latest", "rocmatrix-test/base:1"])
IMAGES = st.lists(
    st.builds(Held, id=st.sampled_from("abcdef"), tags=st.lists(TAGS, max_size=2).map(tuple), size=st.integers(0, 100)),
    max_size=8,
)


@given(IMAGES, st.sets(st.sampled_from("abcdef")), st.integers(0, 300), st.sets(TAGS))
def test_own_images_go_only_as_needed_and_never_one_in_use(images, recorded, budget, needed):
    mine = own(images, recorded)
    for image in mine:
        assert all(tag.startswith(OWN_TAGS) for tag in image.tags)
        assert image.tags or image.id in recorded
    going = to_remove(mine, budget=budget, needed=needed)
    assert not any(set(image.tags) & needed for image in going)
    left = sum(image.size for image in mine) - sum(image.size for image in going)
    assert left <= budget or all(image in going or set(image.tags) & needed for image in mine)
    if going:
        assert left + going[-1].size > budget


def test_stranger_without_a_tag_stays():
    assert own([Held(id="x", tags=(), size=1)], recorded={"y"}) == []


def test_builder_is_pruned_only_if_named():
    assert "--builder=mine" in prune_argv("mine", 5)


def test_images_are_listed_in_one_answer_since_another_program_may_remove_one_meanwhile():
    listed = [
        {"Id": "sha256:a", "RepoTags": ["rocmatrix:night-x"], "Size": 3},
        {"Id": "sha256:b", "RepoTags": None, "Size": 4},
        {"Id": "sha256:c", "RepoTags": ["<none>:<none>"], "Size": 5},
    ]
    client = SimpleNamespace(api=SimpleNamespace(images=lambda: listed))  # and nothing else can be asked
    assert [(each.id, each.tags, each.size) for each in disk.held(client)] == [
        ("sha256:a", ("rocmatrix:night-x",), 3), ("sha256:b", (), 4), ("sha256:c", (), 5),
    ]  # fmt: skip


class Busy:
    """An engine that fails to list its images while another program removes one, `times` times."""

    def __init__(self, times):
        self.times, self.api = times, self

    def images(self):
        self.times -= 1
        if self.times >= 0:
            raise docker.errors.APIError("failed to calculate size of image x:1: not found")
        return [{"Id": "sha256:a", "RepoTags": ["a:1"], "Size": 1}]


def test_images_are_listed_again_where_one_goes_meanwhile(monkeypatch):
    monkeypatch.setattr(disk, "PAUSE_SECONDS", 0)
    assert [image.id for image in disk.held(Busy(disk.TRIES - 1))] == ["sha256:a"]
    with pytest.raises(docker.errors.APIError):
        disk.held(Busy(disk.TRIES))
