"""Checks of a card's state at their limits, on a SYNTHETIC machine; its table of figures is host/gpu_metrics."""

import pytest

from rocmatrix.doctor import host, state
from tests.fixtures import machines
from tests.fixtures.doctor import FOLDER, LIVE


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the machine with one of its card's files changed."""

    def read(name, text):
        machine = machines.two_rx_7900_xt(tmp_path / "machine")
        machine.write(f"{FOLDER}/{name}", text)
        return host.read(machine, **LIVE)

    return read


@pytest.mark.parametrize(
    ("millidegrees", "status"), [(104_900, "ok"), (105_000, "warning"), (109_900, "warning"), (110_000, "error")]
)
def test_temperature_is_judged_from_five_degrees_below_the_cards_own_limit(read, millidegrees, status):
    found = state.temperature(read("hwmon/hwmon4/temp2_input", f"{millidegrees}\n"))
    assert (found.code, found.status) == ("D502", status)


@pytest.mark.parametrize(
    ("level", "status"),
    [("auto", "ok"), ("high", "ok"), ("manual", "note"), ("low", "warning"), ("profile_peak", "warning")],
)
def test_power_level_that_holds_clocks_is_named_with_its_remedy(read, level, status):
    found = state.power_level(read("power_dpm_force_performance_level", f"{level}\n"))
    assert (found.code, found.status) == ("D501", status)
    assert (f"/{FOLDER}/" in (found.fix or "")) == (status != "ok")
