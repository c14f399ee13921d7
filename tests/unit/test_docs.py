"""Pages state their kind, links lead somewhere, commands exist, and the README begins with what a reader needs."""

import re
from functools import cache
from pathlib import Path

import pytest

from rocmatrix.cli.options.command import known

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *sorted((ROOT / "docs").glob("*/*.md"))]
KINDS = ("Guide:", "Concepts:", "Reference.", "Reference,")
FIRST_SCREEN = 30  # lines


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_of_docs_names_its_kind_first(page):
    assert page.read_text().split("\n\n")[1].startswith(KINDS)


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_link_of_a_document_leads_to_a_file_and_a_heading(page):
    # Without text between the brackets it is no link, but C++: `operator[](size_type)`.
    for target in re.findall(r"(?<!\[)\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.is_file(), target
        assert not anchor or anchor in anchors(file), target


def test_pages_of_docs_are_linked_from_the_readme():
    text = (ROOT / "README.md").read_text()
    assert [page.name for page in PAGES if f"docs/{page.name}" not in text] == []


def test_first_screen_of_the_readme_has_picture_commands_and_contents():
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:FIRST_SCREEN])
    assert "docs/flow.svg" in screen
    assert "./invokew train" in screen
    assert "What you get" in screen
    assert not re.search(r"^\|", screen, re.MULTILINE)


def commands_of(text: str) -> list[list[str]]:
    """Words of each `./invokew` command, in a block or between backquotes, up to a comment or `--`."""
    found = re.findall(r"\./invokew ([^`\n#]*)", re.sub(r"\\\n\s*", " ", text))
    return [words for one in found if (words := one.partition(" -- ")[0].split()) and words[0] in known()]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_commands_of_a_document_have_the_options_that_it_gives_them(page):
    for task, *words in commands_of(page.read_text()):
        typed = {word.partition("=")[0].rstrip(".,;:)") for word in words if word.startswith("--")}
        assert typed - {"--help"} <= {f"--{flag.name}" for flag in known()[task].flags}, f"{task} {words}"


def test_wrong_option_of_a_documents_command_is_found():
    ((task, option),) = commands_of("Type `./invokew render --chek` first.\n")
    assert option.removeprefix("--") not in {flag.name for flag in known()[task].flags}
