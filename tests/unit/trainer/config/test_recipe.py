from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from trainer.config.recipe import as_recipe, find, from_assignment, from_recipe, keys, names, resolve
from trainer.config.train import TrainConfig, settings
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import PACKAGE, RECIPES


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write


def refused(code: str, *parts: str, call) -> None:
    with pytest.raises(TrainerError) as caught:
        call()
    assert caught.value.code == code
    for part in parts:
        assert part in caught.value.render()


@pytest.mark.parametrize("name", names())
def test_recipes_of_the_project_are_all_read(name: str) -> None:
    assert from_recipe(find(name))


def test_sample_recipe_is_the_defaults() -> None:
    assert resolve({"recipe": "sample"}) == TrainConfig.of()


def test_recipes_at_the_top_are_those_of_the_package() -> None:
    assert (PACKAGE.parent / "recipes").resolve() == RECIPES.resolve()


def test_typed_value_wins_over_the_recipe_and_the_recipe_over_the_default(write) -> None:
    path = write("train:\n  epochs: 7\n  batch_size: 8\nmodel:\n  hidden_layers: [4, 4]\n")
    config = resolve({"recipe": str(path), "epochs": 9, "set": ["train.seed=3"]})
    own = config.values()
    assert (own["epochs"], own["batch_size"], own["hidden_layers"], own["seed"]) == (9, 8, (4, 4), 3)
    assert config.optimizer.learning_rate == TrainConfig().optimizer.learning_rate
    assert config.origin == {
        "epochs": "flag",
        "seed": "--set",
        "batch_size": "recipe mine.yaml:3",
        "hidden_layers": "recipe mine.yaml:5",
    }


def test_flags_and_set_may_agree_but_not_contradict() -> None:
    assert resolve({"epochs": 3, "set": ["train.epochs=3"]}).loop.epochs == 3
    refused(
        "RM505", "epochs is 3 by flag", "4 by --set", call=lambda: resolve({"epochs": 3, "set": ["train.epochs=4"]})
    )


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        ("train:\n  epoch: 7\n", "RM503", ["mine.yaml:2", "did you mean train.epochs"]),
        ("train:\n  hidden_layers: 7\n", "RM503", ["mine.yaml:2", "did you mean model.hidden_layers?"]),
        ("provenance:\n  cell: x\n", "RM503", ["mine.yaml:2"]),
        ("train:\n\n  epochs: many\n", "RM504", ["mine.yaml:3", "train.epochs: 'many' is not a whole number"]),
        ("train:\n  epochs: null\n", "RM504", ["mine.yaml:2", "has no value"]),
        ("train:\n  epochs: {a: 1}\n", "RM504", ["mine.yaml:2"]),
        ("train:\n  epochs: 1\n  epochs: 2\n", "RM505", ["mine.yaml:3", "mine.yaml:2"]),
        ("train: 7\n", "RM502", ["mine.yaml:1", "settings below train"]),
        ("- 7\n", "RM502", ["mine.yaml:1"]),
        ("train: [\n", "RM502", ["mine.yaml:2"]),
        ("\x00", "RM502", ["mine.yaml"]),
        ("[" * 1000, "RM502", ["mine.yaml", "nested"]),
        ("".join(f"{' ' * depth}b{depth}:\n" for depth in range(900)), "RM502", ["mine.yaml", "nested"]),
    ],
)
def test_mistakes_are_named_with_their_line(write, text: str, code: str, parts: list[str]) -> None:
    refused(code, *parts, call=lambda: from_recipe(write(text)))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    refused("RM502", "x.yaml", call=lambda: from_recipe(tmp_path / "x.yaml"))


def test_unknown_recipe_names_the_nearest() -> None:
    refused("RM502", "did you mean quick?", call=lambda: find("quik"))


@pytest.mark.parametrize(
    ("text", "code"), [("train.epochs", "RM504"), ("epochs=3", "RM503"), ("train.epochs=0", "RM504")]
)
def test_assignment_without_a_usable_value_is_refused(text: str, code: str) -> None:
    refused(code, call=lambda: from_assignment(text))


def test_empty_recipe_changes_nothing(write) -> None:
    assert resolve({"recipe": str(write("# nothing\ntrain:\n"))}) == TrainConfig.of()


def test_settings_but_provenance_may_stand_in_a_recipe() -> None:
    assert {each.name for each in settings().values()} - {each.name for each in keys().values()} == {
        "cell", "cell_absent", "forced", "image", "commit", "rank_choice",
    }  # fmt: skip


@given(
    st.builds(
        TrainConfig.of,
        epochs=st.integers(1, 10**6),
        learning_rate=st.floats(1e-12, 10),
        hidden_layers=st.lists(st.integers(1, 2**20), min_size=1, max_size=9).map(tuple),
        device=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
        .map(str.strip)
        .filter(bool),
        track=st.sets(st.sampled_from(["tensorboard", "wandb", "mlflow"])).map(tuple),
        skip_gpu_cleanup=st.booleans(),
        chunk_size=st.integers(1, 10**6),
    )
)
@settings_of_hypothesis(deadline=None)
def test_configuration_written_as_a_recipe_is_read_back_equal(tmp_path_factory, config: TrainConfig) -> None:
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(as_recipe(config))
    assert resolve({"recipe": str(path)}) == config


@pytest.mark.parametrize("word", ["NULL", "null", "Null", "none", "true", "1e3"])
def test_text_that_yaml_may_read_as_something_else_is_read_back_equal(tmp_path, word: str) -> None:
    config = TrainConfig.of(device=word)
    (tmp_path / "recipe.yaml").write_text(as_recipe(config))
    assert resolve({"recipe": str(tmp_path / "recipe.yaml")}) == config
