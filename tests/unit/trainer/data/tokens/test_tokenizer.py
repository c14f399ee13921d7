"""Bytes as tokens, and tokenizer.json of a folder, against the libraries of Hugging Face."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.file_tokenizers import byte_level, sentencepiece
from trainer.data.tokens.tokenizer import ByteTokenizer, read_tokenizer, with_begin, with_stop
from trainer.runtime.errors import TrainerError

TEXTS = [
    "",
    "plain",
    "Grüße, 世界 🌍\r\n\t",
    "<|im_start|>user\nhi<|im_end|>",
    "a<|endoftext|>b",
    "\x00\x7f\x80",
    "<|im_",
]


@given(st.text())
def test_bytes_of_any_text_are_decoded_again(text):
    encoded = ByteTokenizer().encode(text)
    assert len(encoded.ids) == len(encoded.spans)
    if not any(word in text for word in ByteTokenizer.SPECIAL):
        assert ByteTokenizer().decode(encoded.ids) == text.encode("utf-8", "replace").decode()


@pytest.fixture
def byte_folder(tmp_path):
    for name, content in ByteTokenizer().files().items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("text", TEXTS)
def test_byte_files_in_transformers_give_the_same_ids(byte_folder, text):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(byte_folder, local_files_only=True)
    ours = ByteTokenizer().encode(text).ids
    assert theirs(text, add_special_tokens=False)["input_ids"] == ours
    assert theirs.decode(ours, skip_special_tokens=True) == ByteTokenizer().decode(ours)


def test_byte_files_are_recognised_without_the_library(byte_folder):
    assert isinstance(read_tokenizer(byte_folder), ByteTokenizer)


@pytest.fixture
def bpe_folder(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(["the quick brown fox jumps over the lazy dog " * 20], vocab_size=300)
    made.add_special_tokens(["<eos>", "<turn>"])
    made.enable_truncation(4)
    made.enable_padding(length=4)
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<eos>"}}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [301, 7]}))
    return tmp_path


def test_file_tokenizer_ignores_stored_truncation_and_padding(bpe_folder):
    tokenizer = read_tokenizer(bpe_folder)
    text = "the quick brown fox jumps over the lazy dog"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert len(tokenizer.encode("the").ids) < 4


def test_file_tokenizer_collects_stop_tokens_of_all_files(bpe_folder):
    tokenizer = read_tokenizer(bpe_folder)
    eos = tokenizer.encode("<eos>").ids[0]
    assert tokenizer.stops[0] == eos
    assert set(tokenizer.stops) == {eos, 301, 7}
    assert tokenizer.size > eos


def test_folder_without_stop_token_is_refused(bpe_folder):
    (bpe_folder / "tokenizer_config.json").unlink()
    (bpe_folder / "generation_config.json").unlink()
    with pytest.raises(TrainerError) as caught:
        read_tokenizer(bpe_folder)
    assert caught.value.code == "RM705"


@pytest.mark.parametrize("content", ["", "{", "{}", '{"model": 1}'])
def test_invalid_tokenizer_file_is_refused(tmp_path, content):
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(content)
    (tmp_path / "config.json").write_text('{"eos_token_id": 1}')
    with pytest.raises(TrainerError) as caught:
        read_tokenizer(tmp_path)
    assert caught.value.code == "RM705"


def test_missing_tokenizer_names_the_older_format(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"")
    with pytest.raises(TrainerError) as caught:
        read_tokenizer(tmp_path)
    assert "tokenizer.model" in caught.value.why


@pytest.mark.parametrize(("make", "words"), [(sentencepiece, ["<s>"]), (byte_level, [])])
def test_begin_of_a_text_is_what_the_file_puts_there_as_transformers_has_it(tmp_path, make, words):
    transformers = pytest.importorskip("transformers")
    tokenizer = read_tokenizer(make(tmp_path))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path, local_files_only=True)
    assert theirs.convert_ids_to_tokens(list(tokenizer.begins)) == words
    ids = tokenizer.encode("the fox").ids
    assert with_begin(tokenizer, ids) == theirs("the fox").input_ids
    assert with_begin(tokenizer, with_begin(tokenizer, ids)) == with_begin(tokenizer, ids)  # rendered with it already


def test_begin_of_a_text_is_part_of_the_hash_that_names_shards(tmp_path):
    with_it = read_tokenizer(byte_level(tmp_path / "a", begin=True))
    content = json.loads((tmp_path / "a" / "tokenizer.json").read_text())
    assert with_it.begins == (content["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"][0],)
    assert with_it.sha256 != hashlib.sha256((tmp_path / "a" / "tokenizer.json").read_bytes()).hexdigest()


DECLARED = [
    {"added_tokens_decoder": {"0": {"content": "<|im_start|>", "special": True}, "1": {"content": "<|im_end|>"}}},
    {"additional_special_tokens": ["<|im_start|>"], "pad_token": "<|im_end|>", "sep_token": "[ABSENT]"},
]


@pytest.mark.parametrize("declared", DECLARED)
def test_token_that_the_configuration_alone_declares_stands_whole_as_in_transformers(tmp_path, declared):
    """As in torchtitan's test tokenizer: the vocabulary has the special tokens, tokenizer.json adds none of them."""
    transformers = pytest.importorskip("transformers")
    path = byte_level(tmp_path) / "tokenizer.json"
    content = json.loads(path.read_text())
    rest = [each for each in content["added_tokens"] if not each["content"].startswith("<|im_")]
    content["model"]["vocab"] |= {"<|im_start|>": 300, "<|im_end|>": 301}
    content["added_tokens"] = [{**each, "id": 302 + number} for number, each in enumerate(rest)]
    path.write_text(json.dumps(content))
    bare = read_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", **declared}))
    tokenizer = read_tokenizer(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path, local_files_only=True)
    text = "<|im_start|>user the fox<|im_end|>"
    assert tokenizer.encode(text).ids == theirs(text, add_special_tokens=False).input_ids
    assert (bare.size, bare.sha256 != tokenizer.sha256) == (tokenizer.size, True)
    assert {word for word, _ in tokenizer.added().values()} >= {"<|im_start|>", "<|im_end|>", "</s>"}


@pytest.mark.parametrize("name", ["lstrip", "rstrip", "single_word"])
def test_space_around_a_token_is_that_of_the_configuration_as_in_transformers(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    path = byte_level(tmp_path) / "tokenizer.json"
    (token,) = [each for each in json.loads(path.read_text())["added_tokens"] if each["content"] == "</s>"]
    declared = {"added_tokens_decoder": {str(token["id"]): {**token, name: True}}}
    bare = read_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", **declared}))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path, local_files_only=True)
    text = "the fox </s> jumps</s>x"
    ids = read_tokenizer(tmp_path).encode(text).ids
    assert ids == theirs(text, add_special_tokens=False).input_ids != bare.encode(text).ids


def test_stop_token_after_a_text_is_there_once():
    tokenizer = ByteTokenizer()
    assert with_stop(tokenizer, [65]) == [65, 256]
    assert with_stop(tokenizer, [65, 258]) == [65, 258]


def test_special_tokens_that_an_older_folder_names_in_its_map_alone_reach_the_template(tmp_path):
    byte_level(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": None}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"bos_token": {"content": "<s>"}}))
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 1}))
    assert read_tokenizer(tmp_path).special == {"bos_token": "<s>"}


@pytest.mark.parametrize("value", [-1, "2", True, [2, -5], 1.5])
def test_stop_that_is_no_token_id_is_refused(tmp_path, value):
    folder = byte_level(tmp_path / "m")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    with pytest.raises(TrainerError) as caught:
        read_tokenizer(folder)
    assert (caught.value.code, "no token id" in caught.value.what) == ("RM705", True)


@pytest.mark.parametrize(
    ("name", "content", "packages"),
    [
        ("tokenizer.model", b"\n\x0e\n\x05<unk>", "transformers sentencepiece protobuf`"),
        ("tokenizer.model", b"IQ== 0\nIg== 1\n", "transformers tiktoken`"),
        ("vocab.json", b"{}", "transformers`"),
    ],
)
def test_tokenizer_of_an_older_format_is_refused_with_the_command_that_converts_it(tmp_path, name, content, packages):
    folder = tmp_path / "it's here"
    folder.mkdir()
    (folder / name).write_bytes(content)
    with pytest.raises(TrainerError) as caught:
        read_tokenizer(folder)
    assert (caught.value.code, packages in caught.value.next) == ("RM705", True)
    program, option, code = shlex.split(caught.value.next.split("`")[3])
    assert (program, option) == (".venv/bin/python", "-c")
    folders = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert folders == [str(folder)] * 2
