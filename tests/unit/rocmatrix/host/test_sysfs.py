"""The edge reads below its root only; parsing takes any text; permission bits decide who opens a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.host.sysfs import DeviceNode, Files, is_unsigned, parse_properties

UNSIGNED = st.integers(min_value=0, max_value=2**64 - 1)
WORDS = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)


@given(st.dictionaries(WORDS, UNSIGNED))
def test_unsigned_64_bit_properties_are_read_back(properties):
    text = "".join(f"{key} {value}\n" for key, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text())
def test_text_of_any_kind_parses_to_unsigned_numbers(text):
    assert all(value >= 0 for value in parse_properties(text).values())


@pytest.mark.parametrize("text", ["", "-1", "0x10", "1.5", "٣", "9" * 5000])
def test_value_that_the_kernel_never_writes_is_no_number(text):
    assert not is_unsigned(text)


def test_link_out_of_the_root_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("7")
    root = tmp_path / "root"
    root.mkdir()
    (root / "up").symlink_to("../secret")
    (root / "absolute").symlink_to(tmp_path / "secret")
    (root / "own").write_text("1")
    (root / "inside").symlink_to("own")
    files = Files(root)
    assert files.word("up") is None
    assert files.word("absolute") is None
    assert files.word("../secret") is None
    assert files.word("inside") == "1"


def test_loop_of_links_and_a_folder_are_no_files(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    files = Files(tmp_path)
    assert files.text("loop") is None
    assert files.text("folder") is None
    assert files.numbers("missing") == []


def test_entries_are_numbers_in_numeric_order(tmp_path):
    for name in ("10", "2", "1", "properties", "-3"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
    assert Files(tmp_path).numbers("nodes") == [1, 2, 10]


def test_folder_left_by_an_engine_is_no_device(tmp_path):
    (tmp_path / "dev/kfd").mkdir(parents=True)
    assert Files(tmp_path).node("/dev/kfd") is None


def test_node_has_its_owner_in_numbers(tmp_path):
    (tmp_path / "kfd").touch(mode=0o640)
    owner = (tmp_path / "kfd").stat()
    assert Files(tmp_path).node("/kfd") == DeviceNode(path="/kfd", uid=owner.st_uid, gid=owner.st_gid, mode=0o640)


@pytest.mark.parametrize(
    ("mode", "uid", "groups", "opens"),
    [
        (0o660, 1000, {992}, True),
        (0o660, 1000, {109}, False),
        (0o660, 0, set(), True),  # the owner, without any capability
        (0o666, 1000, set(), True),
        (0o060, 0, {992}, False),  # the owner's bits count first, and they are closed
        (0o606, 1000, {992}, False),  # so are the group's
        (0o640, 1000, {992}, False),  # reading alone does not do
        (0o662, 1000, set(), False),
    ],
)
def test_first_class_that_matches_decides(mode, uid, groups, opens):
    node = DeviceNode(path="/dev/kfd", uid=0, gid=992, mode=mode)
    assert node.opens_for(uid=uid, groups=frozenset(groups)) is opens


def test_number_of_more_than_64_bits_is_no_number():
    assert parse_properties(f"unique_id {2**64}\nhive_id {2**64 - 1}\n") == {"hive_id": 2**64 - 1}
