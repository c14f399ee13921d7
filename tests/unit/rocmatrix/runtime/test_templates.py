"""One environment of templates: nothing is rendered from a name that is not given, and HTML is escaped."""

import jinja2
import pytest

from rocmatrix.runtime import templates


@pytest.mark.parametrize(
    ("choices", "text", "rendered"),
    [
        ({}, "{{ a }}\n", "<\n"),
        ({"html": True}, "{{ a }}\n", "&lt;"),
        ({"brackets": True}, "[% if a %]\n[# no #]${{ [[ a ]] }}\n[% endif %]\n", "${{ < }}\n"),
    ],
)
def test_environment_renders_by_its_marks_and_escapes_for_html(choices, text, rendered):
    assert templates.environment(**choices).from_string(text).render(a="<") == rendered


def test_environment_with_a_name_that_is_not_given_raises():
    with pytest.raises(jinja2.UndefinedError):
        templates.environment().from_string("{{ absent }}").render()
