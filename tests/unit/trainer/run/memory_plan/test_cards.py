"""Cards by name, shapes by name, and what is refused."""

import pytest

from trainer.run.memory_plan.cards import CONTEXT, GIB, card_of
from trainer.runtime.errors import TrainerError


@pytest.mark.parametrize(
    ("text", "arch", "size", "attention"),
    [
        ("RX 7900 XTX", "gfx1100", 24, "flash"),
        ("AMD Radeon RX 7900 XT", "gfx1100", 20, "flash"),
        ("MI50 32 GB", "gfx906", 32, "math"),
        ("RX 6800", "gfx1030", 16, "math"),
        ("RX 9060 XT 16GB", "gfx1200", 16, "math"),
        ("8060S 128 GB", "gfx1151", 64, "flash"),
        ("7900xtx", "gfx1100", 24, "flash"),
        ("AMD Radeon RX 7900 XTX (24GB)", "gfx1100", 24, "flash"),
        ("Radeon-RX-6800XT", "gfx1030", 16, "math"),
        ("Strix Halo 128GB", "gfx1151", 64, "flash"),
        ("Ryzen AI Max+ 395 with 64 GB", "gfx1151", 32, "flash"),
        ("AI Max 395 128GB", "gfx1151", 64, "flash"),
        ("Max+ 395 128 GB", "gfx1151", 64, "flash"),
        ("AMD Ryzen AI MAX+ PRO 395 w/ Radeon 8060S 128 GB", "gfx1151", 64, "flash"),
        ("HX 395 64 GB", "gfx1151", 32, "flash"),
        ("Ryzen AI Max 385 32 GB", "gfx1151", 16, "flash"),
        ("rx 6700 xt", "gfx1031", 12, "math"),
        ("Vega 64", "gfx900", 8, "math"),
        ("Radeon AI PRO R9700", "gfx1201", 32, "flash"),
        ("AMD Instinct MI300X OAM", "gfx942", 192, "flash"),
        ("Sapphire Nitro+ RX 7900 XTX", "gfx1100", 24, "flash"),
    ],
)
def test_card_by_name_has_memory_and_attention(text, arch, size, attention):
    card = card_of(text)
    assert (card.arch, card.memory, card.attention(flag=False)[0]) == (arch, size * GIB, attention)
    assert card.budget == card.memory - CONTEXT


def test_experimental_flag_changes_attention_where_kernels_are_there():
    assert card_of("RX 9060 XT 16 GB").attention(flag=True) == ("flash", "efficient")
    assert card_of("MI100").attention(flag=True) == ("math", "math")
    assert card_of("MI300X").attention(flag=False, precision="fp32") == ("efficient", "efficient")


def test_architecture_with_its_memory_is_a_card():
    card = card_of("gfx1100", 24)
    assert (card.arch, card.memory, card.precision) == ("gfx1100", 24 * GIB, "bf16")
    with pytest.raises(TrainerError, match=r"RX 7900 XTX[\s\S]*--memory-gib"):
        card_of("gfx1100")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RX 9999", "RX 9070"),
        ("MI50", '"MI50 16 GB", "MI50 32 GB"'),
        ("RX 7900 XTX, RX 7900 XT", "RX 7900 XTX and RX 7900 XT are several cards"),
        ("7900 XTX 24GB + 6800 16GB", "with --cards 2"),
        ("2 x RX 7900 XTX", '--gpu "RX 7900 XTX" --cards 2'),
        ("RX 7900 XT x4", '--gpu "RX 7900 XT" --cards 4'),
        ("RTX 4090", "cards of AMD alone"),
        ("NVIDIA A100 80GB", "cards of AMD alone"),
        ("RX 7900 XTX 48 GB", "--memory-gib 48"),
        ("MI250X 128 GB", "each device of it has 64 GB"),
    ],
)
def test_card_that_is_unknown_several_or_ambiguous_is_refused(text, words):
    with pytest.raises(TrainerError, match="RM738") as caught:
        card_of(text)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["Radeon PRO V710", "V340", "V520"])
def test_card_of_amd_that_is_not_in_the_table_is_not_called_another_makers(text):
    with pytest.raises(TrainerError, match="RM738") as caught:
        card_of(text)
    assert "cards of AMD alone" not in str(caught.value)


@pytest.mark.parametrize("text", ["V100", "H200", "L40", "GTX 1080"])
def test_card_of_another_maker_is_named_as_such(text):
    with pytest.raises(TrainerError, match="cards of AMD alone"):
        card_of(text)


def test_memory_given_by_itself_is_a_cards_own():
    assert card_of("RX 7900 XTX 24 GB", 48).memory == 48 * GIB
