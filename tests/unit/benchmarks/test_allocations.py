"""What is allocated at the largest moment of a recorded step, by hand-written events of torch's allocator."""

from benchmarks.allocations import at_peak


def event(action, address, size, frames=()):
    rows = [{"filename": name, "line": line} for name, line in frames]
    return {"action": action, "addr": address, "size": size, "frames": rows}


def test_largest_moment_holds_what_was_not_released_before_it_by_size_and_own_frames():
    own = (("/lib/torch/nn.py", 7), ("/src/trainer/engine/loop.py", 12))
    events = [
        event("alloc", 1, 100), event("free_completed", 1, 100), event("alloc", 2, 60, own), event("alloc", 3, 60, own),
        event("alloc", 4, 30, own[:1]), event("free_completed", 3, 60), event("alloc", 5, 10),
    ]  # fmt: skip
    assert at_peak(events) == [[60, 2, "loop:12"], [30, 1, "nn:7"]]
