"""Tokenizers: bytes, built in, and tokenizer.json of a model folder by the `tokenizers` library."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from trainer.runtime.errors import TrainerError

FILE = "tokenizer.json"
ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")  # of a token that stands whole in a text
BYTES = "bytes"
SENTENCEPIECE = b"\n"  # the first byte of its model: a field of a message; tiktoken's file is text


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Token ids, and of each the characters [begin, end) of the text that it stands for."""

    ids: list[int]
    spans: list[tuple[int, int]]


class Tokenizer(Protocol):
    """Converts text to token ids and back. Special tokens that stand in the text are recognised; none is added.

    What begins a text of its own (a document, a prompt without a chat template) is `begins`: see `with_begin`.
    """

    @property
    def name(self) -> str:
        """Name for messages and metadata."""

    @property
    def sha256(self) -> str:
        """Hash of all that decides the token ids."""

    @property
    def size(self) -> int:
        """One more than the largest token id."""

    @property
    def stops(self) -> tuple[int, ...]:
        """Ids that end a text or an answer; the first one separates documents."""

    @property
    def begins(self) -> tuple[int, ...]:
        """Ids that the tokenizer's own rules put before a text, as <s> of Llama and <bos> of Gemma; often none."""

    @property
    def special(self) -> dict[str, str]:
        """Texts of special tokens by role, as chat templates name them: bos_token, eos_token."""

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones; invalid UTF-8 is replaced."""

    def added(self) -> dict[int, tuple[str, bool]]:
        """Return the tokens that stand whole in a text by id: what each is, and whether it is a special one."""

    def spelling(self, token: int) -> str:
        """Return what the vocabulary calls one token, as <|im_end|>."""


class ByteTokenizer:
    """One token a byte of UTF-8, and four special tokens. Needs no file and no package."""

    SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>")
    name = BYTES
    size = 256 + len(SPECIAL)
    stops = (256, 258)
    begins: tuple[int, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of the tokens' texts."""
        return hashlib.sha256(repr(("bytes", self.SPECIAL)).encode()).hexdigest()

    @property
    def special(self) -> dict[str, str]:
        """The end of a text; no token begins one."""
        return {"eos_token": self.SPECIAL[0], "pad_token": self.SPECIAL[3]}

    def encode(self, text: str) -> Encoded:
        """Return bytes as ids; lone surrogates, which UTF-8 cannot hold, become question marks."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        place = 0
        while place < len(text):
            found = next((n for n, word in enumerate(self.SPECIAL) if text.startswith(word, place)), None)
            if found is not None:
                end, codes = place + len(self.SPECIAL[found]), [256 + found]
            else:
                end, codes = place + 1, list(text[place].encode("utf-8", "replace"))
            ids += codes
            spans += [(place, end)] * len(codes)
            place = end
        return Encoded(ids=ids, spans=spans)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the bytes."""
        return bytes(each for each in ids if each < 256).decode("utf-8", "replace")

    def added(self) -> dict[int, tuple[str, bool]]:
        """Return the four special tokens."""
        return {256 + number: (word, True) for number, word in enumerate(self.SPECIAL)}

    def spelling(self, token: int) -> str:
        """Return a special token's text, or the byte as a number."""
        return self.SPECIAL[token - 256] if token >= 256 else f"<0x{token:02X}>"

    def encode_bytes(self, content: bytes) -> list[int]:
        """Return plain text's tokens without looking for special ones: faster, and no text can end a document."""
        return list(content)

    def files(self) -> dict[str, bytes]:
        """Return tokenizer files with which Hugging Face programs give the same ids."""
        from trainer.data.tokens.chat_template import CHATML

        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_max_length": 10**9,
            **self.special,
        }
        return {
            FILE: (json.dumps(_byte_level(self.SPECIAL), ensure_ascii=False, indent=1) + "\n").encode(),
            "tokenizer_config.json": (json.dumps(config, indent=2, sort_keys=True) + "\n").encode(),
            "chat_template.jinja": CHATML.encode(),
        }


def _byte_level(special: Sequence[str]) -> dict[str, Any]:
    """Return tokenizer.json of a byte-level BPE without merges: each byte is its own token."""
    added = [
        {"id": 256 + n, "content": word, "special": True, "normalized": False}
        | {"single_word": False, "lstrip": False, "rstrip": False}
        for n, word in enumerate(special)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    model = {"type": "BPE", "vocab": {letter: byte for byte, letter in enumerate(_letters())}, "merges": []}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": model,
    }


def _letters() -> list[str]:
    """Return the printable letter of each byte in byte-level BPE (GPT-2): itself, or the next one from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def with_begin(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Return a text's tokens with what begins one before them, once: rows are often rendered with it already.

    Args:
        ids: tokens of the text.
    """
    begins = list(tokenizer.begins)
    return ids if ids[: len(begins)] == begins else begins + ids


def with_stop(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Return a text's tokens with a stop token after them, once.

    Args:
        ids: tokens of the text.
    """
    return ids if ids and ids[-1] in tokenizer.stops else [*ids, tokenizer.stops[0]]


class FileTokenizer:
    """The tokenizer of a model folder."""

    def __init__(self, path: Path, *, stops: tuple[int, ...], special: dict[str, str]) -> None:
        self.name, self.stops, self.special = path.parent.name, stops, special
        self._tokenizer = _load(path)
        added = _declared(self._tokenizer, path.parent)
        self._tokenizer.add_tokens(added)
        self.begins = _begins(self._tokenizer)
        own = path.read_bytes() + b"".join(repr(each).encode() for each in (self.begins, added) if each)
        self.sha256 = hashlib.sha256(own).hexdigest()
        self.size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a text."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Encoded(ids=encoding.ids, spans=encoding.offsets)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def added(self) -> dict[int, tuple[str, bool]]:
        """Return the tokens that stand whole in a text by id: what each is, and whether it is a special one."""
        return {n: (each.content, each.special) for n, each in self._tokenizer.get_added_tokens_decoder().items()}

    def spelling(self, token: int) -> str:
        """Return the token's entry in the vocabulary, or its number where it has none."""
        return str(self._tokenizer.id_to_token(token) or f"<{token}>")


def _load(path: Path) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise TrainerError("RM716", what=f"{path} needs the package tokenizers, which is not installed") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise TrainerError("RM705", what=f"{FILE} is not valid", where=str(path), why=str(error)) from None
    tokenizer.no_truncation()  # both may be stored in the file, and would cut rows or fill them up unseen
    tokenizer.no_padding()
    return tokenizer


def _declared(tokenizer: Any, folder: Path) -> list[Any]:
    """Return tokens of the vocabulary that tokenizer_config.json declares to stand whole, and tokenizer.json does not.

    Or not with the same space around them. transformers adds them when it loads a folder, where without it <|im_end|>
    of a text would be a dozen tokens.
    """
    from tokenizers import AddedToken

    config = _json(folder / "tokenizer_config.json")
    entries = config.get("added_tokens_decoder")
    entries = [each for each in entries.values() if isinstance(each, dict)] if isinstance(entries, dict) else []
    lists = (config.get(name) for name in ("additional_special_tokens", "extra_special_tokens"))
    special = [*_special(folder).values(), *(each for listed in lists if isinstance(listed, list) for each in listed)]
    whole = {each.content: each for each in tokenizer.get_added_tokens_decoder().values()}
    options = {text: {"special": True} for text in special if isinstance(text, str) and text not in whole}
    for each in entries:
        named = {"special": True} if each.get("content") in special else {}
        options[str(each.get("content"))] = {name: each[name] for name in FLAGS if name in each} | named
    there = [text for text in options if text and tokenizer.token_to_id(text) is not None]
    made = [AddedToken(text, **options[text]) for text in there]
    return [token for token in made if repr(token) != repr(whole.get(token.content))]


def _begins(tokenizer: Any) -> tuple[int, ...]:
    """Return the ids that the file's own post-processor puts before a text.

    Nothing else decides: transformers 5.23 reads no add_bos_token next to a tokenizer.json (tried for six classes).
    """
    whole, bare = (tokenizer.encode("a", add_special_tokens=each).ids for each in (True, False))
    places = [at for at in range(len(whole)) if bare and whole[at : at + len(bare)] == bare]
    return tuple(whole[: places[0]]) if places else ()


def read_tokenizer(folder: Path, *, base: Path | None = None) -> Tokenizer:
    """Return the tokenizer of a model folder, or of an adapter that brings its own.

    Args:
        folder: with tokenizer.json.
        base: of an adapter's folder, that of its base: its configuration names stop tokens, too.

    Raises:
        TrainerError: RM705 where the folder has none, or it has no stop token; RM716 without the package.
    """
    path = folder / FILE
    if not path.is_file():
        raise _without_file(folder)
    if path.read_bytes() == ByteTokenizer().files()[FILE]:
        return ByteTokenizer()
    special = _special(folder)
    stops = _stops([folder] if base is None else [folder, base], path, special)
    if not stops:
        what = "no stop token: neither generation_config.json, config.json nor tokenizer_config.json names one"
        raise TrainerError("RM705", what=what, where=str(folder))
    return FileTokenizer(path, stops=stops, special=special)


def _without_file(folder: Path) -> TrainerError:
    """Return the error for a folder without tokenizer.json, with the command that makes one of an older format."""
    older = next((name for name in ("tokenizer.model", "vocab.json") if (folder / name).is_file()), None)
    if older is None:
        return TrainerError("RM705", what=f"{FILE} is missing", where=str(folder))
    is_text = older == "vocab.json" or (folder / older).open("rb").read(1) != SENTENCEPIECE
    packages = "" if older == "vocab.json" else " tiktoken" if is_text else " sentencepiece protobuf"
    load = f"AutoTokenizer.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
    run = shlex.join([".venv/bin/python", "-c", f"from transformers import AutoTokenizer; {load}"])
    convert = f"Convert it once: `.venv/bin/python -m pip install transformers{packages}`, then `{run}`."
    why = f"{older} is an older format, which transformers converts"
    return TrainerError("RM705", what=f"{FILE} is missing", where=str(folder), why=why, next=convert)


def _special(folder: Path) -> dict[str, str]:
    """Return special tokens by role. Older folders name some in special_tokens_map.json alone."""
    config = {**_json(folder / "special_tokens_map.json"), **_json(folder / "tokenizer_config.json")}
    words = {}
    for key in ROLES:
        value = config.get(key)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            words[key] = value
    return words


def _stops(folders: Sequence[Path], path: Path, special: dict[str, str]) -> tuple[int, ...]:
    """Return the ids that end an answer: those of the generation and the tokenizer, without doubles."""
    found: list[int] = []
    if "eos_token" in special:
        identity = _load(path).token_to_id(special["eos_token"])
        found += [] if identity is None else [identity]
    names = ("generation_config.json", "config.json")
    for configuration in [folder / name for folder in folders for name in names]:
        value = _json(configuration).get("eos_token_id")
        found += value if isinstance(value, list) else [] if value is None else [value]
    wrong = [each for each in found if not isinstance(each, int) or isinstance(each, bool) or each < 0]
    if wrong:
        raise TrainerError("RM705", what=f"eos_token_id {wrong[0]!r} is no token id", where=str(folders[-1]))
    return tuple(dict.fromkeys(found))


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise TrainerError("RM705", what=f"{path.name} is not valid JSON", where=str(path), why=str(error)) from None
    return content if isinstance(content, dict) else {}
