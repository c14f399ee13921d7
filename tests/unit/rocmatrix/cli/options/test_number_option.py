"""Numbers are checked where they are typed, and every task's are."""

import pytest
from invoke.exceptions import ParseError
from invoke.parser.argument import Argument

from rocmatrix.cli.options.command import NUMBERS
from rocmatrix.cli.options.invoke_tasks import collection
from rocmatrix.cli.options.number_option import NumberOption, checked


def test_numbers_of_all_tasks_are_checked():
    numbers = [each for task in collection().tasks.values() for each in task.get_arguments() if each.kind in NUMBERS]
    assert len(numbers) >= 6
    assert all(isinstance(each, NumberOption) for each in numbers)


@pytest.mark.parametrize(("kind", "message"), [(int, "a whole number"), (float, "a number")])
def test_wrong_number_names_option_and_task(kind, message):
    option = checked(Argument(names=("some-port", "p"), kind=kind, default=kind(7), attr_name="some_port"), task="show")
    with pytest.raises(ParseError, match=f"--some-port takes {message}, not 'abc'") as wrong:
        option.value = "abc"
    assert wrong.value.context.name == "show"
    assert (option.name, option.value) == ("some_port", 7)
    option.value = "8"
    assert option.value == 8


def test_other_options_stay_as_they_are():
    text = Argument(name="out")
    assert checked(text, task="show") is text
