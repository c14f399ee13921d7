"""A job's record holds what the job stated in its JSON lines, and says what it is no evidence of."""

import pytest

from rocmatrix.evidence import from_events
from rocmatrix.evidence.counted import required
from rocmatrix.evidence.level import why_not
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs.runner import Finished
from tests.fixtures import cells, sysfs

PLACE = {"where": "container", "image": "sha256:" + "1" * 64, "inputs": "2" * 64, "commit": "abc"}


@pytest.fixture
def host(tmp_path):
    return read_hardware(sysfs.two_rx_7900_xt(tmp_path / "machine", render_gid=100))


def verdict(probe="blas", status="pass", *, kind="rocm", arch="gfx1100:sramecc-:xnack-", numbers=()):
    device = {"kind": kind, "name": "SIMULATED Radeon RX 7900 XT", "arch": arch}
    return {
        "event": "probe", "probe": probe, "status": status, "summary": "simulated", "seconds": 1.5,
        "device": device, "numbers": list(numbers), "versions": {"torch": "2.7.1", "hip": None},
    }  # fmt: skip


def smoke(*events, status=0, host):
    return from_events.of_smoke(cells.GFX1100, Finished(status=status, events=events), host, **PLACE)


def test_smoke_is_recorded_as_its_verdicts_state_it(host):
    numbers = [{"name": "fp16", "value": 90.5, "unit": "TFLOP/s"}, {"name": "fp8", "value": None, "unit": "TFLOP/s"}]
    others = [verdict(probe) for probe in required.ON_A_CARD if probe not in ("device", "blas")]
    made = smoke(verdict("device"), verdict(numbers=numbers), *others, {"event": "smoke", "passed": 2}, host=host)
    assert made.passed
    assert [(v.probe, v.status, v.seconds) for v in made.verdicts][:2] == [
        ("device", "pass", 1.5),
        ("blas", "pass", 1.5),
    ]
    assert [(n.probe, n.name, n.value, n.unit) for n in made.numbers] == [("blas", "fp16", 90.5, "TFLOP/s")]
    assert made.hardware.gfx == ("gfx1100", "gfx1100")
    assert made.hardware.seen == ("gfx1100",)
    assert made.versions == {"torch": "2.7.1"}
    assert why_not(made, cells.GFX1100) is None


def test_pci_ids_are_those_of_the_cards_that_the_probes_met(tmp_path):
    desk = read_hardware(sysfs.desktop_with_igpu(tmp_path / "desk"))
    assert smoke(verdict(), host=desk).hardware.ids == ("1002:744c",)
    assert smoke(verdict(kind="cpu", arch="x86_64"), host=desk).hardware.ids == ()


@pytest.mark.parametrize(
    ("events", "status"), [((), 0), ((verdict(),), 1), ((verdict(status="crash"),), 1), ((verdict(status="fail"),), 0)]
)
def test_smoke_passes_only_where_all_verdicts_do(events, status, host):
    assert not smoke(*events, status=status, host=host).passed


def test_probe_that_has_nothing_to_do_neither_passes_nor_fails(host):
    idle = verdict("two_gpu_step", "not-applicable")
    assert smoke(verdict(), idle, host=host).passed
    assert not smoke(idle, host=host).passed


def test_text_in_a_log_is_no_verdict(host):
    done = Finished(status=0, events=({"event": "notice", "what": '{"event": "probe", "status": "pass"} all passed'},))
    assert not from_events.of_smoke(cells.GFX1100, done, host, **PLACE).passed


def test_card_of_another_maker_is_marked(host):
    made = smoke(verdict(kind="cuda", arch="sm_90"), host=host)
    assert made.passed
    assert made.marks == ("nvidia",)
    assert "nvidia" in why_not(made, cells.GFX1100)


def test_devices_of_two_kinds_give_no_device(host):
    made = smoke(verdict("device", kind="cpu"), verdict(), host=host)
    assert made.hardware.device == "none"
    assert why_not(made, cells.GFX1100)


def train(host, *, source, ended=True):
    device = {"kind": "rocm", "name": "SIMULATED Radeon RX 7900 XT", "arch": "gfx1100"}
    rates = [{"event": "epoch", "rows_per_second": rate} for rate in (10.0, 300.0, 200.0)]
    events = ({"event": "start", "device": device, "data": {"source": source}}, *rates)
    events += ({"event": "done", "best": {"validation_loss": 0.5}},) if ended else ()
    return from_events.of_train(cells.GFX1100, Finished(status=0, events=events), host, **PLACE)


def test_training_run_gives_the_middle_of_its_rates(host):
    made = train(host, source="a market")
    assert made.passed
    assert {n.name: (n.value, n.unit) for n in made.numbers} == {
        "epochs": (3.0, "epochs"),
        "rows_per_second": (200.0, "1/s"),
        "best_validation_loss": (0.5, "1"),
    }
    assert why_not(made, cells.GFX1100) is None
    assert not train(host, source="a market", ended=False).passed


def test_synthetic_data_are_marked(host):
    assert train(host, source="synthetic: seeded generator, no market data").marks == ("synthetic",)


def test_stand_ins_bases_and_overridden_rules_are_marked(monkeypatch):
    assert from_events.marks_of(cells.GFX1100) == ()
    assert from_events.marks_of(cells.GFX1100, base="mirror/rocm:6.3", forced=True) == ("other-base", "forced")
    monkeypatch.setenv(from_events.STAND_IN, "wheels of no content")
    assert from_events.marks_of(cells.GFX1100) == ("stand-in",)


def test_base_from_a_mirror_is_the_same_base():
    digest = "sha256:" + "d" * 64
    cell = cells.GFX1100.model_copy(update={"base": cells.GFX1100.base.model_copy(update={"digest": digest})})
    assert from_events.marks_of(cell, base=f"mirror.example/rocm@{digest}") == ()
    assert from_events.marks_of(cell, base=f"mirror.example/rocm@{digest[:-1]}e") == ("other-base",)


@pytest.mark.parametrize("base", ["evil.example/{0}:latest", "evil.example/rocm@{0}ff", "rocm@{0}@{1}", "{0}", "x{0}"])
def test_name_that_only_holds_the_digest_somewhere_is_another_base(base):
    digest, other = "sha256:" + "d" * 64, "sha256:" + "e" * 64
    cell = cells.GFX1100.model_copy(update={"base": cells.GFX1100.base.model_copy(update={"digest": digest})})
    assert from_events.marks_of(cell, base=base.format(digest, other)) == ("other-base",)


@pytest.mark.parametrize(("moved", "marks"), [(["0000:03:00.0"], ("card-errors",)), ([], ())])
def test_run_whose_cards_counted_errors_is_marked_and_raises_nothing(moved, marks, host):
    health = {"event": "health", "moved": moved, "unknown": [], "what": "ras/umc/ue rose from 0 to 1", "cards": {}}
    made = smoke(*map(verdict, required.ON_A_CARD), health, host=host)
    assert (made.passed, made.marks) == (True, marks)
    assert (why_not(made, cells.GFX1100) is None) == (not moved)
    assert "ras/umc/ue" in made.log
