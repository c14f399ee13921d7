"""The rules on two values, judged for a log and the host that it is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rocmatrix.diagnosis.comparisons.compare import Compared, Facts, compare, kinds
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.naming import reading


def of(reader: Values, here: HostContext, architectures: Mapping[str, Architecture]) -> dict[str, Compared]:
    """Return the rules that hold, by id. One that holds for the log alone is judged by that, whatever the host has.

    Args:
        reader: what was read of the log's own words.
        here: where the log is taken to be from; its values stand in for those that the log has none of.
        architectures: the matrix's, which name cards; without any no card is known by its name.
    """
    facts = Facts(
        read=reader.reader.readings,
        kinds=kinds(reader.comparisons),
        cards=lambda name: reading.read(architectures, name).architecture if architectures else None,
    )
    of_host = {} if reader.is_of_another_machine(here) else here.values
    joined = compare(reader.comparisons, replace(facts, host=of_host)) if of_host else {}
    return {**joined, **compare(reader.comparisons, facts)}
