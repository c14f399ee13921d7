"""The environment of the project's templates. jinja2 is imported when the first one is rendered."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rocmatrix.runtime.paths import TEMPLATES

if TYPE_CHECKING:
    import jinja2


BRACES = ("{{", "}}", "{%", "%}", "{#", "#}")  # around values, blocks and comments
BRACKETS = ("[[", "]]", "[%", "%]", "[#", "#]")


@cache
def environment(folder: str = "", *, brackets: bool = False, html: bool = False) -> jinja2.Environment:
    """Return the environment: a name that is not given is an error, and blocks leave no blank lines.

    Args:
        folder: a folder of the templates; those of it that extend each other name no folder.
        brackets: marks are square brackets, for a language that uses double braces itself.
        html: values are escaped for HTML, and a page ends without a new line.
    """
    import jinja2

    marks = BRACKETS if brackets else BRACES
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / folder),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=not html,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=html,
        variable_start_string=marks[0],
        variable_end_string=marks[1],
        block_start_string=marks[2],
        block_end_string=marks[3],
        comment_start_string=marks[4],
        comment_end_string=marks[5],
    )
