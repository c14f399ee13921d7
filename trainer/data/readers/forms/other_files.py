"""Files of other programs, known by their first bytes, and how each becomes a table of text."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple


class OtherFile(NamedTuple):
    """What a file is, and the next step."""

    kind: str
    advice: str


_PANDAS = "Write it as CSV first, such as with pandas: {}."
ROWS_BELOW_A_HEADER = (".csv", ".tsv", ".txt")
TYPED = "One file is read. Join those of the folder, such as with polars: scan_parquet({}).sink_parquet('all.parquet')."
SHEETS = (b"[Content_Types].xml", b"application/vnd.oasis.opendocument")  # .xlsx and .ods
SHEET = OtherFile(
    "a spreadsheet's own file (Excel or OpenDocument)", "Save the sheet as CSV UTF-8, and give that file."
)
# By what their bytes begin with; sources are the formats' own specifications
BINARY: tuple[tuple[bytes, OtherFile], ...] = (
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", SHEET),  # .xls, of Excel before 2007
    (rb"\x89HDF\r\n\x1a\n", OtherFile("HDF5", _PANDAS.format("read_hdf(FILE).to_csv(OTHER)"))),
    (rb"\$FL[23]", OtherFile("of SPSS", _PANDAS.format("read_spss(FILE).to_csv(OTHER)"))),
    (rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\x00", OtherFile(
        "of Stata", _PANDAS.format("read_stata(FILE).to_csv(OTHER)"))),
    (rb"\x00{12}\xc2\xea\x81\x60", OtherFile("of SAS", _PANDAS.format("read_sas(FILE).to_csv(OTHER)"))),
    (rb"\x80[\x02-\x05].", OtherFile(
        "a pickle of Python",
        "Write it as CSV where it was made, by DataFrame.to_csv(OTHER): a pickle can run any code.")),
    (rb"\x93NUMPY", OtherFile("of NumPy", _PANDAS.format("DataFrame(numpy.load(FILE)).to_csv(OTHER)"))),
    (rb"SQLite format 3\x00", OtherFile(
        "an SQLite database",
        "Write one of its tables as CSV: sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > OTHER.")),
    (rb"RD[AX][23]\n|[XA]\n\x00\x00", OtherFile("of R",
        "Write it as CSV first, in R: write.csv(readRDS(FILE), OTHER).")),
    (rb"MATLAB 5\.0 MAT-file", OtherFile("of MATLAB", "Write it as CSV first, in MATLAB: writetable(TABLE, OTHER).")),
    (rb"%PDF-", OtherFile("a PDF", "Get the data as CSV where the PDF is from, or copy its table into a sheet.")),
    (rb"ORC", OtherFile("ORC", _PANDAS.format("read_orc(FILE).to_parquet(OTHER)"))),
    (rb"Obj\x01", OtherFile("Avro", "Write it as CSV or Parquet first, such as with polars: read_avro(FILE).")),
    (rb"FEA1", OtherFile("Feather of version 1", _PANDAS.format("read_feather(FILE).to_csv(OTHER)"))),
    (rb"\xff\xff\xff\xff.{3}\x00", OtherFile("a stream of Arrow",
        "Write it as a file first, such as with polars: read_ipc_stream(FILE).write_parquet(OTHER).")),
    (rb"PAR1|ARROW1", OtherFile("Parquet or Arrow, packed once more", "Unpack it, and give the file within.")),
    (rb"7z\xbc\xaf|Rar!\x1a", OtherFile("an archive (7z or rar)", "Unpack it, and give one of its files.")),
    (rb".{257}ustar", OtherFile("an archive (tar)", "Unpack it with `tar xf FILE`, and give one of its files.")),
    (rb"SCID", OtherFile("of Sierra Chart's own format", "Export the bars there: Edit, Export Bar Data to Text File.")),
    (rb"\x89PNG|\xff\xd8\xff|GIF8", OtherFile("a picture", "Give the table that the picture was made of.")),
    (rb"\x7fELF|MZ", OtherFile("a program", "Check the path.")),
)  # fmt: skip
TEXT: tuple[tuple[str, int, OtherFile], ...] = (
    (r"<(!doctype|html|\?xml|head|body)", re.IGNORECASE, OtherFile(
        "a web page or XML", "The site sent a page in place of the data: open it in a browser, and download again.")),
    (r"(?:.*\n)*?@relation\s", re.IGNORECASE, OtherFile("ARFF, of Weka", _PANDAS.format(
        "DataFrame(scipy.io.arff.loadarff(FILE)[0])").replace("with pandas", "with SciPy and pandas"))),
    (r"[+-]?\d+(\.\d+)?( \d+:[-+.\deE]+)+ *(#.*)?\r?\n", 0, OtherFile("in the libsvm format", _PANDAS.format(
        "load_svmlight_file(FILE)").replace("with pandas", "with scikit-learn and pandas"))),
    (r"\{.*\}\r?\n\{", 0, OtherFile("JSON, an object a line", _PANDAS.format(
        "read_json(FILE, lines=True).to_csv(OTHER)"))),
    (r"[\[{]\s*[\[{\"]", 0, OtherFile("JSON", _PANDAS.format("read_json(...).to_csv(...)"))),
)  # fmt: skip
ANY_BINARY = OtherFile("no text, but bytes of another program", "Export the table there as CSV, and give that file.")


def binary_file(head: bytes) -> OtherFile | None:
    """Return what a file of another program is by its first bytes, unpacked; None for text and an unknown one.

    Args:
        head: the first bytes, 300 at least where there are as many.
    """
    if not re.search(rb"[\x00-\x08\x0e-\x1f\x80-\xff]", head):
        return None  # a header may begin with the letters of a mark
    return next((found for pattern, found in BINARY if re.match(pattern, head, re.DOTALL)), None)


def is_binary(head: bytes) -> bool:
    """Return whether bytes hold characters that no text has, of those that no encoding of letters uses."""
    return re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", head) is not None


def text_file(begin: str) -> OtherFile | None:
    """Return what a text is that is no table; None for one that may be.

    Args:
        begin: the first characters, without a mark of the encoding and spaces in front.
    """
    return next((found for pattern, flags, found in TEXT if re.match(pattern, begin, flags)), None)


def _has_parts(folder: Path) -> bool:
    """Return whether Parquet files are one or two folders below: no further, as a folder may be the whole machine's."""
    try:
        return any(any(folder.glob(parts)) for parts in ("*/*.parquet", "*=*/*=*/*.parquet"))
    except OSError:  # a folder that is removed meanwhile
        return False


def folder_advice(folder: Path) -> str:
    """Return how the files of a folder become the one that is read; empty where none that could is seen in it."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in ROWS_BELOW_A_HEADER)
    except OSError:  # it may be entered and not listed
        return ""
    if len(names) == 1:
        return f"One file is read: --data {shlex.quote(str(folder / names[0]))}."
    if not names:
        return TYPED.format(repr(f"{folder}/**/*.parquet")) if _has_parts(folder) else ""
    ending = Path(names[0]).suffix
    joined = f"awk 'NR == 1 || FNR > 1' {shlex.quote(str(folder))}/*{ending} > all{ending}"  # ends a last line, too
    return f"One file is read, and the folder has {len(names)}. Where their columns agree, join them: {joined}"
