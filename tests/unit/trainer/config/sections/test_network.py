"""Settings of networks over rows: which fit each other, and what metadata.json gets of them."""

from __future__ import annotations

import pytest

from trainer.config.sections.network import NETWORK_SECTIONS, NETWORKS, MlpConfig, TransformerConfig
from trainer.runtime.errors import TrainerError


def transformer(**changes: object) -> TransformerConfig:
    return TransformerConfig(**({"network": "transformer"} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("width", "heads", "fits"), [(32, 4, True), (32, 32, True), (32, 1, True), (32, 5, False), (4, 8, False)]
)
def test_heads_divide_the_width_of_a_token(width: int, heads: int, fits: bool) -> None:
    config = transformer(token_width=width, heads=heads)
    if fits:
        config.require_fitting({})
        return
    with pytest.raises(TrainerError, match="RM557") as caught:
        config.require_fitting({})
    assert f"--token-width {width} cannot be shared by --heads {heads}" == caught.value.what


@pytest.mark.parametrize("changes", [{"hidden_layers": ()}, {"norm": "batch"}])
def test_transformer_needs_blocks_and_norms_by_layer(changes: dict[str, object]) -> None:
    transformer(norm="layer").require_fitting({})
    with pytest.raises(TrainerError, match="RM557"):
        transformer(**changes).require_fitting({})


@pytest.mark.parametrize("network", ["mlp", "residual"])
def test_attention_of_a_network_without_any_is_refused_unless_it_is_auto(network: str) -> None:
    config = MlpConfig(network=network, hidden_layers=())
    for unused in ({}, {"attention": "auto"}, {"heads": 8}):
        config.require_fitting(unused)
    with pytest.raises(TrainerError, match="RM557") as caught:
        config.require_fitting({"attention": "math"})
    assert f"--attention math with --network {network}" == caught.value.what


def test_metadata_get_the_settings_that_a_kind_has_of_its_own() -> None:
    assert MlpConfig().metadata_entries() == {}
    assert transformer(token_width=16, heads=2).metadata_entries() == {"token_width": 16, "heads": 2}


def test_kind_with_a_section_is_one_that_can_be_chosen() -> None:
    assert NETWORK_SECTIONS.keys() <= set(NETWORKS)
    assert NETWORK_SECTIONS["transformer"] is TransformerConfig
