"""Which matches count: whole words, at the start of a line where the signature asks for it, and not excused.

A signature's exceptions (`unless`) are lines that show that the program went on, or that the text means another thing.
"""

from __future__ import annotations

import builtins
import re

from rocmatrix.diagnosis.pattern import WIDEST, Pattern, squeeze
from rocmatrix.diagnosis.search.chunk import Chunk, Shape
from rocmatrix.diagnosis.search.frames import MOST_LINES, is_ignored
from rocmatrix.diagnosis.signature import Signature

# in patterns of lines that follow a failure and excuse it: the program went on
GOES_ON = ("retr", "attempt", "fall", "skip", "continu", "ignor")
_MODULE = re.compile(rb"[\w.]{1,200}\.$")  # before an exception's name: where it is defined
MOST_REFUSED = 200  # lines of different words in one chunk that are kept as refused
MOST_BEFORE = 600  # bytes before an exception that show whether it begins its line
# before the text of a line: a byte-order mark, what a bar was drawn over, a journal's field
_BEFORE_TEXT = re.compile(rb"^(?:.*\r)?(?:\xef\xbb\xbf)?(?:.{0,400}\"?MESSAGE\"? ?[=:] ?\"?)?", re.S)
# before `error:` at the start of a message: the program that prints it, its file, or a file and a place in it
_PROGRAM = re.compile(
    rb"(?!.{0,80}(?:warn|info|debug|note|trace))[^\s:]{1,160}(?::\d{1,6}){0,2}:(?: (?:fatal|internal))?"
    rb"|[\d \[(][\d :.,TZ+/\[\]()-]{1,60}",  # or a time
    re.IGNORECASE,
)
# before `Error:` or `Exception:` at the start of a line: the front of the name of an exception that a program defines
# itself, which no pattern lists; Python's own are known by their whole names
_OWN_EXCEPTION = re.compile(rb"(?:[A-Za-z_][\w.]{0,200}\.)?([A-Z][A-Za-z0-9]{1,60})")
_OF_PYTHON = frozenset(name.encode() for name in dir(builtins) if name.endswith("Error"))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# before a commit's subject, which often names the failure that it mends: what git prints after a checkout
_COMMIT = re.compile(rb"(?:HEAD is now at|Previous HEAD position was) [0-9a-f]{7,40} ")
# of a test that did not fail, in the lines of GoogleTest, CTest and pytest: its name says what is tested
_TEST = re.compile(
    rb"\[ (?:RUN      |      OK|  SKIPPED|  PASSED) ?\] "
    rb"|^ *Start +\d{1,6}: \S+ *$|^ *\d{1,6}/\d{1,6} Test +#\d{1,6}: .{1,300}(?: Passed |\*\*\*Skipped )"
    rb"|\.py::\w.{0,400} (?:PASSED|SKIPPED|XFAIL|XPASS|RERUN)\b|(?:^|\] )(?:PASSED|SKIPPED|XFAIL|XPASS) .{0,200}\.py"
)
_OF_CMAKE = re.compile(rb"CMake (?:(?:Deprecation )?(Warning)|Error)\b")
_MISSING_PACKAGE = re.compile(rb"By not providing|Could not find a package configuration file")
MOST_OF_CMAKE = 7  # lines from the head of a message of CMake to the package that it does not find
_DECORATION = b"])|}>*\x82\x83\x91"  # what may stand before the first word of a line: brackets, borders of panes


def is_counted(
    chunk: Chunk, signature: Signature, pattern: Pattern, span: tuple[int, int], refused: set[Shape]
) -> bool:
    """Return whether a match is whole, begins its line where it has to, and its lines are none that do not count.

    Args:
        chunk: the lines.
        signature: whose match it is.
        pattern: what matched.
        span: where, in the squeezed text.
        refused: matches of this pattern that do not count for their own lines; more are added. A log may repeat a
            warning a million times.
    """
    if chunk.names_a_commit and _is_of_a_commit(chunk, span):
        return False
    if chunk.names_a_test and _TEST.search(chunk.around(span[0])[0][: 4 * WIDEST]):
        return False
    if chunk.warns_as_cmake and _is_of_a_warning_of_cmake(chunk, span):
        return False
    if not (pattern.whole_start or pattern.whole_end or signature.uncaught or signature.unless):
        return True
    # where no two of so many were alike, more are not compared: that takes longer than to judge them
    shape = chunk.shape(span) if 0 < len(refused) < MOST_REFUSED else None
    if shape in refused:
        return False
    refusal = _refusal(chunk, signature, pattern, span)
    if refusal == "own" and not signature.excused_by_number and len(refused) < MOST_REFUSED:
        refused.update(filter(None, [shape or chunk.shape(span)]))
    return refusal is None


def _is_of_a_commit(chunk: Chunk, span: tuple[int, int]) -> bool:
    line, place = chunk.around(span[0])
    return _COMMIT.search(line, 0, min(place, MOST_BEFORE)) is not None


def _is_of_a_warning_of_cmake(chunk: Chunk, span: tuple[int, int]) -> bool:
    """Return whether CMake only warns in these lines that a package is missing: then it goes on."""
    line, place = chunk.around(span[0])
    if _OF_CMAKE.search(line, 0, MOST_BEFORE) or not _MISSING_PACKAGE.search(line, 0, place + MOST_BEFORE):
        return False
    heads = map(_OF_CMAKE.search, reversed(chunk.before(span[0], MOST_OF_CMAKE)))
    nearest = next(filter(None, heads), None)
    return nearest is not None and nearest[1] is not None


def _refusal(chunk: Chunk, signature: Signature, pattern: Pattern, span: tuple[int, int]) -> str | None:
    """Return why a match does not count: for its `own` lines, or for what is `around` them; None where it does."""
    if not _is_whole(chunk, pattern, span) or (signature.uncaught and not _begins_its_line(chunk, span)):
        return "own"
    if signature.uncaught and chunk.ignores_exceptions and is_ignored(chunk.before(span[0], MOST_LINES)):
        return "around"
    if not signature.unless:
        return None
    rows = chunk.line(span[0]), chunk.line(span[1] - 1)
    known = chunk.excuses.setdefault(signature.id, {})  # a line of a megabyte may hold a thousand matches
    if rows not in known:
        known[rows] = _excuse(chunk, signature, *rows)
    return known[rows]


def _is_whole(chunk: Chunk, pattern: Pattern, span: tuple[int, int]) -> bool:
    """Return whether a match begins and ends at the edges of words in the text, where the pattern asks for it."""
    (start, end), text = span, chunk.squeezed
    # only next to a byte of a word the text itself decides: whether blanks stand between them
    if pattern.whole_start and _in_word(text[max(0, start - 1) : start]):
        line, place = chunk.around(start)
        if _in_word(line[max(0, place - 1) : place]):
            return False
    if pattern.whole_end and _in_word(text[end : end + 1]):
        line, place = chunk.around(end - 1)
        return not _in_word(line[place + 1 : place + 2])
    return True


def _begins_its_line(chunk: Chunk, span: tuple[int, int]) -> bool:
    """Return whether nothing but decoration, or the program that prints it, stands before a match in its line."""
    line, place = chunk.around(span[0])
    near = line[max(0, place - MOST_BEFORE) : place]  # of a line of a megabyte each match would read all else
    before = _without_what_precedes_text(near).strip()
    of_program = line[place : place + 5].lower() in (b"error", b"fatal") and _PROGRAM.fullmatch(before)
    of_itself = not near[-1:].isspace() and _is_own_exception(before, line[place : place + len(b"Exception:")])
    return not before or before[-1] in _DECORATION or before == b"E" or bool(of_program) or of_itself


def _without_what_precedes_text(near: bytes) -> bytes:
    """Return what stands before an exception in its line, without its module and what is no text of the line.

    Each expression is tried only where it can match: a log may hold a million exceptions.
    """
    if near.endswith(b"."):
        near = _MODULE.sub(b"", near)
    if b"\r" in near or b"MESSAGE" in near or near.startswith(_BYTE_ORDER_MARK):
        near = _BEFORE_TEXT.sub(b"", near, count=1)
    return near


def _is_own_exception(before: bytes, text: bytes) -> bool:
    """Return whether a match begins within the name of an exception that a program defines and that begins its line.

    Args:
        before: what stands before the match in its line; `ACPI ` before `Error:` is no part of a name.
        text: the match's first bytes as printed.
    """
    name = _OWN_EXCEPTION.fullmatch(before) if text.startswith((b"Error:", b"Exception:")) else None
    return name is not None and name[1] + b"Error" not in _OF_PYTHON


def _excuse(chunk: Chunk, signature: Signature, first: int, last: int) -> str | None:
    """Return whether a line that does not count begins in lines `first` to `last`; it may be wrapped into the next.

    What stands before the words excuses, too, so lines are read as they came; colours and a journal's numbers may hide
    a word there, so they are read without decoration as well. `own`: the match's own lines suffice.
    """
    own = last + 1 - first
    views = (chunk.printed[first : last + 2], chunk.lines(first, last + 2))
    if not any(_excuses(rows, signature, own) for rows in views):
        return None
    texts = [squeeze(b"".join(rows[:own])) for rows in views]
    alone = any(one.compiled.search(text) for text in texts for one in signature.exceptions)
    return "own" if alone else "around"


def _excuses(rows: list[bytes], signature: Signature, own: int) -> bool:
    """Return whether an exception of a signature begins in the first rows.

    In the row after them only that the program went on (`GOES_ON`) counts: any other word is of another message.

    Args:
        rows: those of a match and the one after them.
        own: how many the match has.
    """
    first = b"".join(row[: 4 * WIDEST] for row in rows[:own])
    after = b"".join(row[: 4 * WIDEST] for row in rows[own:])
    text, end = squeeze((first + after)[: 4 * WIDEST]), len(squeeze(first))
    for one in signature.exceptions:
        match = one.compiled.search(text)
        if match is not None and (match.start() < end or any(word in one.text.lower() for word in GOES_ON)):
            return True
    return False


def _in_word(byte: bytes) -> bool:
    """Return whether a byte is part of a word; none is not."""
    letter = byte.decode("latin-1")
    return letter.isalnum() or letter == "_"
