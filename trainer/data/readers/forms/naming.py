"""Names as they are compared, columns that are given by name or number, and the error for those that are missing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from trainer.config.name_list import as_word
from trainer.data.readers.forms.by_content import no_bars
from trainer.runtime.errors import TrainerError, suggestion

NONE = "none"  # --columns volume=none: the file has no volume, as those of an index or a currency pair


def plain(name: str) -> str:
    """Return a header's name as it is compared: lower case, words joined by `_`, also those of BidOpen, no brackets."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", unicodedata.normalize("NFC", name.strip().strip("<>")))
    kept = "".join(each if each.isalnum() or unicodedata.category(each)[0] == "M" else "_" for each in words.lower())
    return re.sub("_+", "_", kept).strip("_")  # marks are letters' parts in Thai and Hindi


def missing_columns(
    missing: list[str], spare: list[str], names: Sequence[str], where: str, likely: str | None = None
) -> TrainerError:
    """Return the error that names all missing columns at once.

    Args:
        missing: roles without a column.
        spare: names of columns that have no role.
        names: the header's cells.
        where: path and line of the file, for messages.
        likely: the column that may be the missing one, by its values.
    """
    hint = suggestion(missing[0], spare or list(names))
    which = " and ".join([", ".join(map(repr, missing[:-1]))] * (len(missing) > 1) + [repr(missing[-1])])
    advice = f"Say which column it is: --columns {','.join(f'{role}=NAME' for role in missing)}; "
    advice += "a column may be given by its number, too"
    advice += f", and volume={NONE} states that there is no volume." if "volume" in missing else "."
    if missing == ["volume"]:
        advice = f"State that there is none: --columns volume={NONE}; or name the column: --columns volume=NAME."
    if likely is not None:
        advice = f"By its values --columns {as_word([f'{missing[0]}={likely}'])} may name it; compare it with the file."
    if len(names) == 1:
        advice = "The cells of a line stand between one of , ; tab or |: replace what is between them here; "
        advice += "columns of fixed widths are split first, as with pandas: read_fwf(FILE).to_csv(OTHER)."
    advice = no_bars(names, [plain(name) for name in names], missing) or advice
    return TrainerError("RM512", what=f"no column {which}; {hint}", where=where, next=advice)


def chosen_column(role: str, column: str, names: Sequence[str], where: str) -> int:
    """Return the place of a column that was given by its name or its number, from 1.

    Args:
        role: what the column is for, as date or close.
        column: its name or number.
        names: the header's cells.
        where: path and line of the file, for messages.

    Raises:
        TrainerError: RM731 for a column that is not there.
    """
    if column in names:
        return list(names).index(column)
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    hint = suggestion(column, [name for name in names if name])
    raise TrainerError("RM731", what=f"--columns {role}={column}: {hint}", where=where)
