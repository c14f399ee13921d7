"""Documents: each page states its kind, links lead somewhere, and the README's first screen has what a reader needs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
KINDS = ("Guide:", "Concepts:", "Reference.", "Reference,")
FIRST_SCREEN = 30  # lines


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
