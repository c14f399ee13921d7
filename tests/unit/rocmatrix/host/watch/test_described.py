"""A snapshot as plain data: what is unknown is null, and no serial number is in it."""

import json

from rocmatrix.host.watch import described, snapshot
from tests.fixtures import machines


def test_description_has_null_for_what_is_unknown_and_no_serial_number(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    found = described.described(snapshot.Watch(machine).take(), source="test")
    card = found["cards"][0]
    assert (card["power_w"], card["core_mhz"], card["memory_bytes"]) == (None, None, {"used": None, "total": 20 << 30})
    assert (card["address"], card["state"], card["throttled"]) == ("0000:03:00.0", "present", [])
    assert "unique" not in json.dumps(found, allow_nan=False)
