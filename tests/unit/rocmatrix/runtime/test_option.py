"""An option is written once, as a field: its default gives its type, and a name of Python's own can be typed."""

from dataclasses import dataclass, field

from rocmatrix.runtime.option import option, options_of, positional


@dataclass(frozen=True, kw_only=True)
class Shared:
    cell: str = option("a cell")
    count: int = option("how many", default=2)


@dataclass(frozen=True, kw_only=True)
class Own(Shared):
    cell: str = option("another text")
    target: str = option("an engine", typed="for")
    probe: tuple[str, ...] = option("may be repeated", default=())
    log: str = positional("a file", metavar="FILE")
    made: str = field(default="no option")


def test_options_of_a_dataclass_are_its_fields_and_those_of_its_bases():
    assert {name: (each.typed, each.help) for name, each in options_of(Own).items()} == {
        "cell": ("cell", "another text"),
        "count": ("count", "how many"),
        "target": ("for", "an engine"),
        "probe": ("probe", "may be repeated"),
        "log": ("log", "a file"),
    }


def test_options_state_what_must_be_typed_and_what_may_be_repeated():
    found = options_of(Own)
    assert [name for name, each in found.items() if each.required] == ["log"]
    assert [name for name, each in found.items() if each.repeated] == ["probe"]
    assert found["count"].default == 2
