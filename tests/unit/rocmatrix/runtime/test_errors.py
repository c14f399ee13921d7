from __future__ import annotations

import importlib
import pkgutil

from rocmatrix.runtime import codes
from rocmatrix.runtime.codes.entry import CatalogEntry, catalog, entries
from rocmatrix.runtime.errors import CATALOG

TOPICS = [module.name for module in pkgutil.iter_modules(codes.__path__) if module.name != "entry"]


def held(topic: str) -> tuple[CatalogEntry, ...]:
    module = importlib.import_module(f"rocmatrix.runtime.codes.{topic}")
    found: tuple[CatalogEntry, ...] = getattr(module, topic.upper())
    return found


def test_codes_are_unique_and_in_a_topic():
    together = [entry.code for topic in TOPICS for entry in held(topic)]
    assert together
    assert sorted(together) == list(CATALOG)


def test_topics_are_in_numeric_order():
    for topic in TOPICS:
        numbers = [int(entry.code.removeprefix("RM")) for entry in held(topic)]
        assert numbers == sorted(numbers), topic


def test_codes_are_none_of_the_trainers():
    assert not [code for code in CATALOG if code.startswith("RM5")]


def test_catalog_joins_topics_by_number():
    row = ("title", "meaning", "next")
    joined = catalog(entries(("RM400", *row), ("RM640", *row)), entries(("RM012", *row), ("RM500", *row)))
    assert list(joined) == ["RM012", "RM400", "RM500", "RM640"]
    assert all(code == entry.code for code, entry in joined.items())
