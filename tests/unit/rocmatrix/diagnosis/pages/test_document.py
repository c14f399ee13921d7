"""The pages of all failures in Markdown: one that lists them, and one an area that holds them whole."""

from rocmatrix.diagnosis.pages import document, measured
from tests.unit.rocmatrix.diagnosis.known import LISTED, ROOT, SIGNATURES


def test_pages_name_every_signature_and_hold_it_in_its_area():
    pages = document.files(LISTED, measured.table(ROOT))
    for one in LISTED:
        assert f"\n- [{one.id}](failures/{one.area}.md#{one.id})\n" in pages[document.FILE]
        assert f"\n## {one.id}\n" in pages[f"{document.FOLDER}/{one.area}.md"]


def test_entry_states_when_it_is_to_be_looked_at_again():
    one = SIGNATURES[0]
    page = document.files([one], "")[f"{document.FOLDER}/{one.area}.md"]
    assert "to look at again from 2027-11-2" in page
    assert one.remedy in page
