"""Values of a host, by the names that comparisons give them."""

from pathlib import Path

from rocmatrix.diagnosis.comparisons import forms
from rocmatrix.diagnosis.machine import host_values
from rocmatrix.doctor import host
from rocmatrix.doctor.host import User
from rocmatrix.host.sysfs import Files
from tests.unit.rocmatrix.diagnosis.known import ROOT


def read(tmp_path, **known):
    release = tmp_path / "proc/sys/kernel/osrelease"
    release.parent.mkdir(parents=True, exist_ok=True)
    release.write_text("6.8.0-45-generic\n")
    return host_values.of(host.read(Files(Path(tmp_path)), environment=known.pop("environment", None), **known))


def test_host_without_card_gives_its_kernel_alone(tmp_path):
    assert read(tmp_path) == {"running_kernel": ("6.8.0-45-generic",)}


def test_host_gives_user_limits_and_variables(tmp_path):
    found = read(
        tmp_path,
        environment={"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "HIP_VISIBLE_DEVICES": ""},
        user=User(uid=0, groups=frozenset({0, 44})),
        shared_memory_bytes=64 << 20,
    )
    assert found["override_gfx"] == ("10.3.0",)
    assert found["user_gids"] == ("0 44",)
    assert found["user_groups"] == ("0 44 root",)
    assert found["shm_size"] == (str(64 << 20),)
    assert "hip_index" not in found
    assert set(found) <= set(forms.load(ROOT).values)


def test_inventory_gives_kernel_and_cards():
    described = {"kernel": "6.8.0", "cards": [{"architecture": "gfx1100"}, {"architecture": None}]}
    assert host_values.of_inventory(described) == {"running_kernel": ("6.8.0",), "card_gfx": ("gfx1100",)}
    assert host_values.of_inventory({}) == {}
