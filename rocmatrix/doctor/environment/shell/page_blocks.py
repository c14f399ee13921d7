"""Code blocks of pages that no fence marks: indented ones of Markdown, those of reStructuredText, cells of notebooks.

What is indented may be prose: a block counts as code only where its first line begins as a command does.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence

from rocmatrix.doctor.environment.shell.blocks import FENCE, Block, language_of, typed

_INDENT = re.compile(r"[ \t]*")
_CODE = 4  # columns by which Markdown sets code apart
_COMMAND = re.compile(
    r"\$ \S|(?:sudo (?:-\w+ )?)?(?:"
    r"(?:docker|podman|nerdctl) (?:container )?(?:run|build|pull|create|exec|compose|buildx)\b"
    r"|pip3? install\b|uv (?:pip|add|sync|venv|run)\b|python[\d.]* (?:-m|-c|\S+\.py)\b"
    r"|conda (?:create|install|activate)\b"
    r"|(?:apt|apt-get|dnf|yum) (?:-\S+ )?(?:install|update)\b|git clone \S|(?:wget|curl) (?:-\S+ )*\S*https?:"
    r"|srun -|sbatch \S|torchrun -|usermod -|export \w+=|[A-Z][A-Z0-9_]+=\S+ (?:\S+=\S+ )*\.?[\w/])"
)
_DOCKERFILE = re.compile(r"FROM [\w./:$@{}-]+(?: +[Aa][Ss] +\S+)?\s*$")
_COMPOSE = re.compile(r"services:\s*$|apiVersion:\s")
_DIRECTIVE = re.compile(
    r"(?P<margin>[ \t]*)\.\. (?:code-block|code|sourcecode|prompt|parsed-literal)::[ \t]*(?P<language>[\w+-]*)"
)
_COMMENT = re.compile(r"[ \t]*\.\. ")  # of reStructuredText, and what is no code there
_CELL_ROW = re.compile(r'\s*"(?P<text>(?:[^"\\]|\\.)*)",?\s*$')
_MAGIC = re.compile(r"\s*(?:!|%(?=(?:pip|conda|uv)\s)|%sx\s)\s*(?P<command>.*)", re.DOTALL)
_SET = re.compile(r"\s*%(?:env|set_env)\s+(?P<name>[A-Za-z_]\w*)(?:=|\s+)(?P<value>.*\S)", re.DOTALL)


def indented(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in Markdown that are set apart by four columns, outside of fences.

    Args:
        page: text of the page.
    """
    rows = page.splitlines()
    held = list(_apart_from_fences(rows))
    at = 0
    while at < len(rows):
        if not held[at] or _width(rows[at]) < _CODE or (at and rows[at - 1].strip()):
            at += 1
            continue
        end = _end(rows, at, _CODE, held)
        yield from _block(rows, at, end)
        at = end


def of_rst(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page in reStructuredText: of directives, and literal ones behind two colons.

    Args:
        page: text of the page.
    """
    rows = page.splitlines()
    at = 0
    while at < len(rows):
        directive = _DIRECTIVE.match(rows[at])
        literal = directive is None and rows[at].rstrip().endswith("::") and not _COMMENT.match(rows[at])
        if directive is None and not literal:
            at += 1
            continue
        margin = _width(rows[at])
        first = next((n for n in range(at + 1, len(rows)) if _begins(rows[n])), len(rows))
        end = _end(rows, first, margin + 1, [True] * len(rows)) if first < len(rows) else first
        yield from _block(rows, first, end, directive["language"].lower() if directive else "")
        at = max(end, at + 1)


def of_notebook(text: str) -> str:
    """Return what the cells of a Jupyter notebook hand to a shell, as a script of as many lines as its JSON.

    Args:
        text: of the notebook, with each line of a cell on a line of its own, as Jupyter writes it.
    """
    script, in_shell, goes_on = [], False, False
    for row in text.splitlines():
        held = _CELL_ROW.match(row)
        line = json.loads(f'"{held["text"]}"') if held and _is_json(held["text"]) else None
        if line is None:
            in_shell, goes_on, found = False, False, ""
        elif re.match(r"%%(?:bash|sh|script (?:ba)?sh)\b", line):
            in_shell, found = True, ""
        else:
            found = line if in_shell or goes_on else _of_magic(line)
        goes_on = bool(found) and found.rstrip().endswith("\\")
        script.append(found.rstrip("\n"))
    return "\n".join(script) + "\n"


def _of_magic(line: str) -> str:
    """Return the command of a line that leaves Python; of another line nothing."""
    given = _SET.match(line)
    if given:
        return f"export {given['name']}={shlex.quote(given['value'])}"  # it is taken as it is written
    magic = _MAGIC.match(line)
    return magic["command"] if magic else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(f'"{text}"')
    except ValueError:
        return False
    return True


def _width(row: str) -> int:
    """Return the column at which a line begins; a tab goes on to the next fourth."""
    return len(row[: len(row) - len(row.lstrip())].expandtabs(_CODE))


def _begins(row: str) -> bool:
    return bool(row.strip()) and not re.match(r"\s*:[\w-]+:", row)


def _apart_from_fences(rows: Sequence[str]) -> Iterator[bool]:
    """Yield for each line whether it is outside of every fence, the lines of the fences themselves not."""
    opened = ""
    for row in rows:
        fence = FENCE.match(row)
        if fence and not opened:
            opened = fence["fence"]
            yield False
        elif fence and not fence["language"] and fence["fence"].startswith(opened):
            opened = ""
            yield False
        else:
            yield not opened


def _end(rows: Sequence[str], at: int, margin: int, held: Sequence[bool]) -> int:
    """Return the line behind a block: the first that begins left of the margin, or is within a fence."""
    return next(
        (n for n in range(at, len(rows)) if not held[n] or (rows[n].strip() and _width(rows[n]) < margin)), len(rows)
    )


def _block(rows: Sequence[str], first: int, end: int, named: str = "") -> Iterator[Block]:
    body = [row.strip() and row for row in rows[first:end]]
    shown = next((row.strip() for row in body if row.strip() and not row.lstrip().startswith("# ")), "")
    language = named or (
        "bash" if _COMMAND.match(shown) else "dockerfile" if _DOCKERFILE.match(shown) else
        "yaml" if _COMPOSE.match(shown) else ""
    )  # fmt: skip
    if language:
        least = min((_width(row) for row in body if row.strip()), default=0)
        plain = [row.expandtabs(_CODE)[least:] if row.strip() else "" for row in body]
        text = "\n" * first + "\n".join(typed(plain)) + "\n"
        yield Block(language=language_of(language, plain), text=text)
