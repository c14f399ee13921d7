"""Entries of error codes, joined to one catalog in numeric order."""

from trainer.runtime.codes.entry import catalog, entries


def test_entries_keep_their_texts_in_place():
    (entry,) = entries(("RM900", "a title", "a meaning", "a next step"))
    assert (entry.code, entry.title, entry.meaning, entry.next) == ("RM900", "a title", "a meaning", "a next step")


def test_catalog_of_several_topics_is_in_the_order_of_codes():
    rows = [(code, "t", "m", "n") for code in ("RM903", "RM901", "RM902")]
    found = catalog(entries(*rows[:2]), entries(*rows[2:]))
    assert list(found) == ["RM901", "RM902", "RM903"]
    assert all(entry.code == code for code, entry in found.items())
