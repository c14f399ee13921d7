"""Kind of a file of rows: text, JSON rows, or one that is refused with the command that converts it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from trainer.data.tokens.files.tables import columns, is_delimited, reads_parquet
from trainer.runtime.errors import TrainerError

JSON = (".jsonl", ".json", ".ndjson")
OF_A_ROW = ("messages", "conversations", "chosen", "prompt", "instruction", "text")  # lists of these are one row's
LOOKED_AT = 2**16  # bytes of the beginning
UNPACK = "Unpack it first: {} FILE"
ROWS = "Write its rows as JSONL, one object a line, for example with polars: read_parquet(FILE).write_ndjson(OUT)."
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# First bytes of a kind of file, its name, and what to do. Sources: RFC 1952, RFC 8878, Parquet's and Arrow's formats.
KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "compressed by gzip", UNPACK.format("gunzip -k")),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", UNPACK.format("unzstd -k")),
    (b"\xfd7zXZ\x00", "compressed by xz", UNPACK.format("unxz -k")),
    (b"BZh", "compressed by bzip2", UNPACK.format("bunzip2 -k")),
    (b"PK\x03\x04", "a zip archive (or a document of an office program)", "Unpack it, or save it as plain text."),
    (b"PAR1", "Parquet", ROWS),
    (b"ARROW1", "Arrow", ROWS.replace("read_parquet", "read_ipc")),
    (
        b"\xff\xff\xff\xff",
        "an Arrow stream, as of Hugging Face datasets",
        ROWS.replace("read_parquet", "read_ipc_stream"),
    ),
    (b"%PDF-", "PDF", "Save its text first, for example with pdftotext."),
    (b"\xff\xfe\x00\x00", "UTF-32", "Convert it: iconv -f UTF-32 -t UTF-8 FILE > OUT"),
    (b"\x00\x00\xfe\xff", "UTF-32", "Convert it: iconv -f UTF-32 -t UTF-8 FILE > OUT"),
    (b"{\\rtf", "RTF", "Save it as plain text."),
    (b"\xff\xfe", "UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > OUT"),
    (b"\xfe\xff", "UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE > OUT"),
)


def is_json(path: Path) -> bool:
    """Return whether a file's name states JSON rows, in any letter case."""
    return path.suffix.lower() in JSON


def is_rows(path: Path) -> bool:
    """Return whether a file's name states rows with names: JSON, CSV, TSV, or Parquet where that can be read."""
    return is_json(path) or is_delimited(path) or reads_parquet(path)


def is_one_text(path: Path, names: Mapping[str, str]) -> bool:
    """Return whether --method pretrain trains a file as the text that it is: also a table without a column of texts.

    Args:
        path: the file.
        names: value of `--rename`.
    """
    if not is_delimited(path):
        return not is_rows(path)
    try:
        return "text" not in [names.get(each, each) for each in columns(path)]
    except (OSError, UnicodeDecodeError):
        return True  # its reader reports it


def require_readable(path: Path) -> None:
    """Raise RM717 for a file of a known kind that is neither a text nor JSON, and for a folder.

    A missing file is left to its reader.
    """
    if path.is_dir():
        raise _folder(path)
    start = _start(path)
    for begins, name, how in KINDS:
        if start.startswith(begins) and not (name == "Parquet" and reads_parquet(path)):
            raise TrainerError("RM717", what=f"{path.name} is {name}", where=str(path), next=how)
    if (is_json(path) or is_delimited(path)) and b"\0" in start:
        raise no_text(path)


def _folder(path: Path) -> TrainerError:
    """Return RM717 for a folder, with what makes one file of it."""
    saved = next((each for each in (path, *sorted(path.glob("*/"))) if (each / "dataset_info.json").is_file()), None)
    if saved is not None:  # a data set, or one of its parts
        code = f"import datasets; datasets.load_from_disk({str(saved)!r}).to_json('rows.jsonl')"
        run = shlex.join([".venv/bin/python", "-c", code])
        next_ = f"Write one file of it: `.venv/bin/python -m pip install datasets`, then `{run}`."
        return TrainerError(
            "RM717", what=f"{path.name} is a folder of Hugging Face datasets", where=str(path), next=next_
        )
    files = sorted(each.name for each in path.glob("*") if each.suffix.lower() in (*JSON, ".txt", ".parquet"))
    next_ = f"Give one file of it: {', '.join(files[:5])}." if files else "Give a file: UTF-8 text, or JSONL."
    return TrainerError("RM717", what=f"{path.name} is a folder", where=str(path), next=next_)


def require_rows(path: Path) -> None:
    """Raise RM717 for one JSON object with its rows below a name, as {"data": [...]}, with what takes them out."""
    if path.suffix.lower() != ".json":
        return
    lines = _start(path).decode("utf-8-sig", "ignore").split("\n", 2)
    if not lines[0].startswith("{") or (len(lines) > 1 and lines[1].startswith("{")):
        return  # a list of rows, or one a line
    try:
        whole = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        return
    _require_no_columns(whole, path)
    lists = {name: len(value) for name, value in whole.items() if _is_rows(value)} if isinstance(whole, dict) else {}
    if not lists or any(name in whole for name in OF_A_ROW):
        return
    name = max(lists, key=lambda each: lists[each])
    what = f"{path.name} is one JSON object, whose {name!r} has {lists[name]:,} rows"
    out = shlex.quote(f"{path.stem}.rows.jsonl")
    command = f"jq -c {shlex.quote(f'.[{json.dumps(name)}][]')} {shlex.quote(path.name)} > {out}"
    raise TrainerError("RM717", what=what, where=str(path), next=f"Take them out: {command}")


def _require_no_columns(whole: object, path: Path) -> None:
    """Raise RM717 for rows by number or by column, as pandas' to_json writes them, with what writes one a line."""
    values = list(whole.values()) if isinstance(whole, dict) else []
    tables = bool(values) and all(isinstance(each, dict) and each.keys() == values[0].keys() for each in values)
    columns = len({len(each) for each in values if isinstance(each, list)}) == 1
    columns = columns and all(isinstance(each, list) and any(isinstance(one, str) for one in each) for each in values)
    if not tables and not columns:
        return
    assert isinstance(whole, dict)
    by_number = tables and all(str(name).isdigit() for name in whole)
    orient = ", orient='index'" if by_number else ""
    out = f"to_json({f'{path.stem}.rows.jsonl'!r}, orient='records', lines=True)"
    next_ = f"Write one row a line, by pandas: read_json({path.name!r}{orient}).{out}"
    what = f"{path.name} is one JSON object, with its rows {'by number' if by_number else 'by column'}"
    raise TrainerError("RM717", what=what, where=str(path), next=next_)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def require_text(path: Path) -> None:
    """Raise RM717 where a file to be trained as one text holds rows: the tokens would be those of its syntax."""
    how = "--method pretrain trains the file as the text that it is."
    if path.suffix.lower() == ".ipynb":
        cells = f"Write its cells as a script or as Markdown, with jupyter nbconvert. {how}"
        raise TrainerError("RM717", what=f"{path.name} is a Jupyter notebook", where=str(path), next=cells)
    line = next((each for each in _start(path).decode("utf-8-sig", "ignore").splitlines() if each.strip()), "")
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(row, dict) and row:
        what = f"{path.name} holds JSON rows, and its name does not end with {', '.join(JSON)}"
        raise TrainerError("RM717", what=what, where=str(path), next=f"Rename it to end with .jsonl. {how}")


def not_utf8(path: Path, error: UnicodeDecodeError) -> TrainerError:
    """Return RM717 for text of another encoding, with the command that converts it.

    Args:
        path: the file.
        error: of reading it as UTF-8.
    """
    if BINARY.search(_start(path)):
        return no_text(path)
    file = shlex.quote(path.name)
    command = f"iconv -f WINDOWS-1252 -t UTF-8 {file} > {shlex.quote(f'{path.stem}.utf8{path.suffix}')}"
    how = f"{command} converts text of Western Windows programs; for another encoding name that one behind -f."
    what = f"{path.name} is not UTF-8: byte 0x{error.object[error.start]:02x} is no part of it"
    return TrainerError("RM717", what=what, where=str(path), next=how)


def no_text(path: Path) -> TrainerError:
    """Return RM717 for a file with bytes that no text has."""
    start = _start(path)
    wide = next((name for name, odd in (("UTF-16LE", 1), ("UTF-16BE", 0)) if not any(start[odd:LOOKED_AT:2])), None)
    what = f"{path.name} holds NUL or other bytes that no text has, as pictures, archives and programs do"
    next_ = "Give UTF-8 text, or JSONL; of a document, save its text first."
    if wide and start:
        what = f"{path.name} is UTF-16 without the mark that it begins with"
        file, out = shlex.quote(path.name), shlex.quote(f"{path.stem}.utf8{path.suffix}")
        next_ = f"Convert it: iconv -f {wide} -t UTF-8 {file} > {out}"
    return TrainerError("RM717", what=what, where=str(path), next=next_)


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LOOKED_AT)
    except OSError:
        return b""
