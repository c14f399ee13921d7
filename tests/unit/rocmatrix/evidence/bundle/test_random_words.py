"""Words of random letters are taken out whatever their form; names that programs make and named hashes stay."""

import random
import string

import pytest

from rocmatrix.evidence.bundle.random_words import without_random_words


@pytest.mark.parametrize(
    "line",
    [
        "license A3-ASWWYB-798JRYLJVD4-23DC2-86TVM-H43EB",
        "sent 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",
        "meraki: abdefghjk0123456789mnopqrstuvwx12345678",
        "value <token>+JkwmoujgAoKXVEOKmdkmVgSY+",
    ],
)
def test_word_of_random_letters_is_taken_out(line):
    assert without_random_words(line) == f"{line.split()[0]} <token>"


@pytest.mark.parametrize(
    "line",
    [
        "commit 832d2129a8464e2799f47004b6ad53ef832d2129",
        "image sha256:6dca6432e45d933e13650d1882bd5e696dca6432e45d933e13650d1882bd5e69",
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_MI16x16x16x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1",
        "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEE",
        "attn_fwd_0d1d2d3de45de6d7de8de9de10c11de12de13de14c15de16d",
        "torch-2.12.1+rocm7.2-cp312-cp312-manylinux_2_28_x86_64.whl",
        "amdgpu 0000:03:00.0: amdgpu: ring comp_1.1.0 timeout, signaled seq=175151, emitted seq=175154",
    ],
)
def test_name_of_a_program_or_a_named_hash_stays(line):
    assert without_random_words(line) == line


SMALL, CAPITAL = string.ascii_lowercase + string.digits, string.ascii_uppercase + string.digits
BASE62 = string.ascii_letters + string.digits


@pytest.mark.parametrize("length", [32, 40, 64])
@pytest.mark.parametrize(
    ("alphabet", "most"),
    [
        (BASE62, 0.06),
        (BASE62 + "-_", 0.25),
        (BASE62 + "+/", 0.25),
        (SMALL, 0.02),
        (CAPITAL, 0.02),
        ("0123456789abcdef", 0.0),
    ],
    ids=["base62", "base64url", "base64", "small", "capital", "hex"],
)
def test_token_drawn_from_an_alphabet_is_taken_out_but_for_a_share(alphabet, most, length):
    drawn = random.Random(length)
    ends = [letter for letter in alphabet if letter.isalnum()]
    tokens = [
        drawn.choice(ends) + "".join(drawn.choices(alphabet, k=length - 2)) + drawn.choice(ends) for _ in range(200)
    ]
    left = [token for token in tokens if token in without_random_words(f"the line holds {token} and goes on")]
    assert len(left) <= most * len(tokens), left[:3]


def test_long_word_takes_linear_time():
    for part in ("Z1", "<token>" + "=-_", "a1B2", "A1-"):
        without_random_words(part * 20_000)
