"""What the trainer reads next to --data has a place of its own in a container."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.jobs import input_mounts
from rocmatrix.runtime.errors import RocmatrixError

PATHS = st.text("ab/.", max_size=6)


@given(join=PATHS | st.just("none"), model=PATHS | st.just("none"))
def test_mounted_places_are_those_that_the_options_name(join, model):
    options = {"join": join, "model": model, "data": "x.csv"}
    mounts = list(input_mounts.mounts(options))
    assert {mount.target for mount in mounts} == set(input_mounts.inside(options).values())
    assert len(mounts) == sum(path not in ("", "none") for path in (join, model))
    assert all(mount.read_only and Path(mount.origin).is_absolute() for mount in mounts)


def test_file_and_folder_of_one_name_do_not_meet():
    inside = input_mounts.inside({"join": "a/bars", "model": "b/bars"})
    assert inside == {"join": "/data/.join/bars", "model": "/data/.model/bars"}


def test_path_on_a_claim_stays_relative():
    (mount,) = input_mounts.mounts({"model": "models/llama"}, on_claim=True)
    assert (mount.origin, mount.target) == ("models/llama", "/data/.model/llama")


def test_link_is_not_followed_since_a_node_may_have_another(tmp_path):
    (tmp_path / "link").symlink_to("/somewhere")
    (mount,) = input_mounts.mounts({"model": str(tmp_path / "link")})
    assert mount.origin == str(tmp_path / "link")


def test_input_that_does_not_exist_is_refused_with_its_option(tmp_path):
    input_mounts.require({"model": str(tmp_path), "join": "none"})
    with pytest.raises(RocmatrixError, match="--join names nothing that exists") as refused:
        input_mounts.require({"join": str(tmp_path / "vix.csv")})
    assert refused.value.code == "RM404"
