"""A compiled graph's memory, followed node by node once, and repeated by its events alone.

Of a graph of fixed sizes the same storages are taken and given back in the same order each time. Its inner results are
then no tensors at all, as a block's products and buffers are most of what a plan follows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensorMode

from trainer.run.memory_plan.live_memory import LiveMemory
from trainer.run.memory_plan.tensors.repeated import OtherError, Sizes, fake, sizes_of

OPERATIONS = ("placeholder", "get_attr", "call_function", "output")


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A storage of a graph: of an input by its number, or of a result by its node and its place there."""

    input: int | None = None
    node: fx.Node | None = None
    leaf: int = 0


@dataclass(kw_only=True)
class _Events:
    """What a graph does: at each node storages that are made, followed or given back; and its outputs.

    made: with the sizes of their first tensor and their bytes. outputs: storage and sizes; an input that is returned as
    it is has no sizes, and what is no tensor no storage.
    """

    made: list[list[tuple[_Place, Sizes, int]]] = field(default_factory=list)
    followed: list[list[int]] = field(default_factory=list)
    freed: list[list[_Place]] = field(default_factory=list)
    outputs: list[tuple[_Place | None, Any]] = field(default_factory=list)
    flops: tuple[float, float] = (0.0, 0.0)


class FollowedGraph:
    """A graph whose first call follows its nodes; later calls repeat what was seen."""

    def __init__(self, graph: fx.GraphModule, kept: set[fx.Node]) -> None:
        """Take a graph; kept: nodes whose results are buffers."""
        self.graph, self.kept = graph, kept
        self._events: _Events | None = None
        self._unlike = any(node.op not in OPERATIONS for node in graph.graph.nodes)

    def __call__(self, memory: LiveMemory, inputs: list[Any], mode: FakeTensorMode) -> Any:
        """Return the outputs; `inputs` is emptied, so that each ends with its last use."""
        if self._events is not None and not memory.is_paused:
            return _repeated(self._events, memory, inputs, mode)
        run = _Run(self.graph, memory, self.kept, inputs)
        before = memory.flops, memory.wide_flops
        outputs = run.boxed_run(inputs)
        if not (self._unlike or memory.is_paused):
            flops = memory.flops - before[0], memory.wide_flops - before[1]
            self._events = run.events(outputs, flops)
            self._unlike = self._events is None
        return outputs


class _Run(fx.Interpreter):
    """Runs a graph's nodes, and notes for each whose storages its results are in."""

    def __init__(self, graph: fx.GraphModule, memory: LiveMemory, kept: set[fx.Node], inputs: Sequence[Any]) -> None:
        super().__init__(graph)
        self.memory, self.kept = memory, kept
        self.nodes = list(graph.graph.nodes)
        self.known = True
        self.inputs = {id(each): place for place, each in enumerate(inputs) if isinstance(each, Tensor)}
        self.places: dict[fx.Node, list[_Place | None]] = {
            node: [_Place(input=place)] for place, node in enumerate(n for n in self.nodes if n.op == "placeholder")
        }
        self.made: dict[fx.Node, list[tuple[_Place, Sizes, int]]] = {}
        self.followed: dict[fx.Node, list[int]] = {}
        self._seen: set[_Place] = set()

    def run_node(self, n: fx.Node) -> Any:
        """Run a node; what is no buffer is left out of the memory."""
        with contextlib.nullcontext() if n in self.kept else self.memory.paused():
            result = super().run_node(n)
        if self.known and n.op in ("call_function", "get_attr"):
            try:
                self._note(n, result)
            except OtherError:
                self.known = False
        return result

    def _note(self, node: fx.Node, result: Any) -> None:
        leaves = result if isinstance(result, tuple | list) else [result]
        places: list[_Place | None] = []
        for number, leaf in enumerate(leaves):
            place = self._place(node, leaf, number) if isinstance(leaf, Tensor) else None
            places.append(place)
            if place is not None and node in self.kept:
                self._note_kept(node, place, leaf)
        self.places[node] = places

    def _place(self, node: fx.Node, leaf: Tensor, number: int) -> _Place:
        """Return whose storage a result is in: of an argument, or its own."""
        storage = leaf.untyped_storage()._cdata
        for other in node.all_input_nodes:
            values = self.env[other] if isinstance(self.env[other], tuple | list) else [self.env[other]]
            for value, place in zip(values, self.places[other], strict=True):
                if isinstance(value, Tensor) and place and value.untyped_storage()._cdata == storage:
                    return place
        return _Place(node=node, leaf=number)

    def _note_kept(self, node: fx.Node, place: _Place, leaf: Tensor) -> None:
        if place.node is not None and place.node.op == "get_attr":  # the graph's own constant, there all the time
            raise OtherError
        if place.input is not None:
            self.followed.setdefault(node, []).append(place.input)
        elif place not in self._seen and leaf.untyped_storage().nbytes():
            self._seen.add(place)
            sizes = (*sizes_of(leaf)[:3], 0)
            self.made.setdefault(node, []).append((place, sizes, leaf.untyped_storage().nbytes()))

    def events(self, outputs: Any, flops: tuple[float, float]) -> _Events | None:
        """Return what the graph did, None where it cannot be repeated so."""
        if not self.known:
            return None
        found = _Events(flops=flops)
        last = self._last_uses()
        try:
            found.outputs = [self._output(each, value) for each, value in zip(self._returned(), outputs, strict=True)]
        except OtherError:
            return None
        for number, node in enumerate(self.nodes):
            found.made.append(self.made.get(node, []))
            found.followed.append(self.followed.get(node, []))
            found.freed.append(self._ended(node, {place for place, at in last.items() if at == number}))
        return found

    def _ended(self, node: fx.Node, ending: set[_Place]) -> list[_Place]:
        """Return the storages that end after a node, in the order in which the interpreter lets their tensors go."""
        places = [place for each in self.user_to_last_uses.get(node, []) for place in self.places.get(each, [])]
        found = [place for place in reversed(places) if place is not None and place in ending]
        return list(dict.fromkeys(found))[::-1]

    def _returned(self) -> Sequence[Any]:
        returned: Any = self.nodes[-1].args[0]
        return list(returned)

    def _output(self, node: Any, value: Any) -> tuple[_Place | None, Any]:
        if not isinstance(value, Tensor):
            return None, value
        place = self.places[node][0]
        assert place is not None
        if place.input is not None and self.inputs.get(id(value)) == place.input:
            return place, None
        if place.input is None and place not in self._seen:
            raise OtherError
        return place, sizes_of(value)

    def _last_uses(self) -> dict[_Place, int]:
        """Return after which node each storage's last tensor ends; what outputs hold ends later."""
        ends: dict[_Place, int] = {}
        deleted = {node: user for user, several in self.user_to_last_uses.items() for node in several}
        numbers = {node: number for number, node in enumerate(self.nodes)}
        for node, places in self.places.items():
            at = numbers[deleted[node]] if node in deleted else len(self.nodes) - 1
            for place in places:
                if place is not None and (place.input is not None or place in self._seen):
                    ends[place] = max(ends.get(place, 0), at)
        return ends


def _repeated(events: _Events, memory: LiveMemory, inputs: list[Any], mode: FakeTensorMode) -> Any:
    """Take and give back what the graph does, and return its outputs."""
    given: list[Any] = list(inputs)
    inputs.clear()
    memory.begin_operation()
    returned = {place for place, _ in events.outputs if place is not None}
    held: dict[_Place, Any] = {}
    tensors: dict[_Place, Tensor] = {}
    try:
        for made, followed, freed in zip(events.made, events.followed, events.freed, strict=True):
            for place, sizes, size in made:
                if place in returned:
                    tensors[place] = fake(mode, *sizes)
                    memory.follow(tensors[place])
                else:
                    held[place] = memory.hold(sizes[0], size)
            for number in followed:
                memory.follow(given[number])
            if made is not events.made[-1]:
                _free(freed, given, held, memory, returned)
    finally:
        for each in held.values():
            memory.let_go(each)
    memory.flops += events.flops[0]
    memory.wide_flops += events.flops[1]
    return [_returned_value(place, what, given, tensors, mode) for place, what in events.outputs]


def _free(
    freed: Sequence[_Place], given: list[Any], held: dict[_Place, Any], memory: LiveMemory, returned: set[_Place]
) -> None:
    for place in freed:
        if place.input is None and place in held:
            memory.let_go(held.pop(place))
        elif place.input is not None and place not in returned:
            given[place.input] = None


def _returned_value(
    place: _Place | None, what: Any, given: Sequence[Any], tensors: dict[_Place, Tensor], mode: FakeTensorMode
) -> Any:
    if place is None:
        return what
    source = given[place.input] if place.input is not None else tensors[place]
    if what is None or (place.input is None and what == sizes_of(source)):
        return source
    return fake(mode, *what, of=source)
