"""Data made ready: outputs of the network, and the folder of mapped rows."""

from types import SimpleNamespace

import pytest

from trainer.tasks.prepared import Task, folder_for


@pytest.mark.parametrize(("labels", "outputs"), [(None, 1), ((), 1), (("a", "b", "c"), 3)])
def test_outputs_are_one_or_one_for_each_class(labels, outputs):
    assert Task.outputs.fget(SimpleNamespace(labels=labels)) == outputs


def test_folder_of_mapped_rows_is_made_where_one_is_named(tmp_path):
    assert folder_for(tmp_path / "a/b") == tmp_path / "a/b"
    assert (tmp_path / "a/b").is_dir()
    assert folder_for(tmp_path / "a/b") == tmp_path / "a/b"
    assert folder_for(None) is None
