"""Files that --callback names are found on the host, and named where a container has them."""

import pytest

from rocmatrix.jobs import callback_mounts
from rocmatrix.runtime.errors import RocmatrixError


def test_files_of_one_name_have_places_of_their_own_and_modules_stay(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").touch()
    named = f"{tmp_path}/a/mine.py:One, package.module:Two,{tmp_path}/b/mine.py:Three"
    inside = "/callbacks/0/mine.py:One,package.module:Two,/callbacks/1/mine.py:Three"
    assert callback_mounts.inside(named) == {"callback": inside}
    assert callback_mounts.files(named) == [tmp_path / "a/mine.py", tmp_path / "b/mine.py"]


@pytest.mark.parametrize("named", ["", "package.module", ","])
def test_text_that_names_no_class_is_left_to_the_trainer(named):
    assert callback_mounts.parts(named) == []
    assert callback_mounts.inside(named) == {}


def test_path_with_a_colon_is_divided_at_its_last():
    assert callback_mounts.parts("/a:b/mine.py:One") == [("/a:b/mine.py", "One")]


def test_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="--callback names no file") as refused:
        callback_mounts.files(f"{tmp_path}/mine.py:One")
    assert (refused.value.code, refused.value.where) == ("RM404", f"{tmp_path}/mine.py")
