"""Settings of a guest: keys, options, lines; snapshots are left out."""

from pathlib import Path

from rocmatrix.doctor.environment.files.machines import guest

TEXT = (
    "#GPU of the host\nhostname: rocm\ndev0: /dev/kfd,gid=993  # compute\nlxc.cap.drop =\n\n[before]\ndev1: /dev/null\n"
)


def test_settings_have_their_lines_and_options_and_end_at_the_first_snapshot():
    found = guest.read(TEXT, Path("101.conf"))
    [device] = found.of("dev#")
    assert (device.first, device.options, device.where) == ("/dev/kfd", {"gid": "993"}, "101.conf:3")
    assert found.value("hostname") == "rocm"
    assert found.value("lxc.cap.drop") == found.value("absent") == ""
    assert found.named == "rocm #gpu of the host"


def test_first_value_is_none_where_an_option_comes_first():
    [device] = guest.read("hostpci0: mapping=radeon,pcie=1\n", Path("1.conf")).of("hostpci#")
    assert (device.first, device.options) == ("", {"mapping": "radeon", "pcie": "1"})
