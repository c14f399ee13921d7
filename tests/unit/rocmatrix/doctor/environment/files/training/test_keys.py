"""Settings of trainings, recognised by their keys."""

import pytest

from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.files.training import keys
from rocmatrix.runtime.errors import RocmatrixError


@pytest.mark.parametrize(
    ("names", "known"),
    [
        ({"base_model", "datasets", "adapter"}, True),
        ({"model_name_or_path", "stage"}, True),
        ({"zero_optimization"}, True),
        ({"datasets"}, False),
        ({"learning_rate"}, False),
    ],
)
def test_settings_are_recognised_by_keys_that_stand_together(names, known):
    assert keys.is_training(names) is known


@pytest.mark.parametrize(("name", "text"), [("a.json", '{"name": "a"}'), ("b.yml", "learning_rate: 1\n")])
def test_file_of_other_keys_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(RocmatrixError):
        recognise.subjects(tmp_path / name, shell={})


def test_two_kinds_of_attention_are_reported_at_the_second(tmp_path):
    path = tmp_path / "a.yml"
    path.write_text("base_model: a\ndatasets: []\nflash_attention: true\nsdp_attention: true\n")
    rows = [(one.rule, one.where.rpartition(":")[2]) for one in recognise.subjects(path, shell={})[0].notes]
    assert rows == [("two-kinds-of-attention", "4"), ("flash-attention-of-rocm", "3")]
