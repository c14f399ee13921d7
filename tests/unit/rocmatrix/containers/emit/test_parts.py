"""Parts of a description are joined, and a portable spec is no command."""

import pytest

from rocmatrix.containers import emit
from rocmatrix.containers.emit.parts import merged
from rocmatrix.containers.runspec import RunSpec, portable_spec
from rocmatrix.containers.settings import (
    User,
)
from tests.fixtures import cells
from tests.fixtures.run_specs import example


def test_setting_given_twice_is_refused():
    spec = RunSpec(cell="c", image="i", command=(), settings=(example(User), example(User)))
    with pytest.raises(ValueError, match="user is set twice"):
        emit.docker_sdk_arguments(spec)


def test_portable_spec_is_no_command():
    spec = portable_spec(cells.GFX1100)
    for emitter in (emit.docker_run_argv, emit.docker_sdk_arguments):
        with pytest.raises(ValueError, match="compose variables"):
            emitter(spec)


def test_merged_parts_grow_lists_join_mappings():
    assert merged({"a": [1], "b": {"c": 1}}, [{"a": [2], "b": {"d": 2}}, {"e": 3}]) == {
        "a": [1, 2],
        "b": {"c": 1, "d": 2},
        "e": 3,
    }


def test_merged_parts_with_a_value_given_twice_are_refused_at_any_depth():
    with pytest.raises(ValueError, match="d is set twice"):
        merged({"b": {"d": 1}}, [{"b": {"d": 1}}])
