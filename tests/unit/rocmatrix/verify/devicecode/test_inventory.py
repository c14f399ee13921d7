"""Device code summed up by library and target."""

from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.inspection import DeviceFile
from rocmatrix.verify.devicecode.inventory import Row, rows
from rocmatrix.verify.devicecode.target import Target

NAMES = ("gfx906", "gfx90a", "gfx1100")
CODES = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 999)), max_size=4)


def file(number, codes):
    objects = tuple(CodeObject(target=Target(processor=name), size=size, evidence="ELF flags") for name, size in codes)
    return DeviceFile(path=f"/lib/{number}.so", size=1000 + number, format="code object", objects=objects)


@given(st.lists(CODES, max_size=5))
def test_rows_count_every_code_object_once_under_its_target(files):
    found = rows("blas", [file(number, codes) for number, codes in enumerate(files)])
    assert [str(row.target) for row in found] == sorted({name for codes in files for name, _ in codes}, key=str)
    for row in found:
        name = str(row.target)
        sizes = [size for codes in files for each, size in codes if each == name]
        assert row.loaded == sum(sizes)
        assert row.files == sum(any(each == name for each, _ in codes) for codes in files)


def test_bytes_of_a_file_for_two_targets_are_stored_under_neither():
    shared, own = file(0, [("gfx906", 5), ("gfx90a", 5)]), file(1, [("gfx906", 5)])
    stored = {str(row.target): row.stored for row in rows("blas", [shared, own])}
    assert stored == {"gfx906": 1001, "gfx90a": 0}


def test_row_names_its_library_its_target_and_what_the_target_was_read_from():
    gfx906 = Target(processor="gfx906", features=("xnack+",))
    by_name = DeviceFile(path="/lib/a.dat", size=7, format="index", objects=(), named=gfx906)
    code = CodeObject(target=gfx906, size=5, evidence="bundle entry ID")
    read = DeviceFile(path="/lib/a.co", size=3, format="bundle", objects=(code,))
    about = {"library": "blas", "target": gfx906}
    (row,) = rows("blas", [by_name])
    assert row == Row(**about, files=1, stored=7, loaded=0, evidence=("file name",))
    (row,) = rows("blas", [by_name, read])
    assert row == Row(**about, files=2, stored=10, loaded=5, evidence=("bundle entry ID",))
    assert row.as_json() == {
        "library": "blas", "target": "gfx906:xnack+", "files": 2, "stored": 10, "loaded": 5,
        "evidence": ("bundle entry ID",),
    }  # fmt: skip
