"""The loader's cache and the bundle of certificates, held to what makes them, on SYNTHETIC images."""

import struct
from dataclasses import replace

import pytest

from rocmatrix.verify.files import scripts_output, system
from rocmatrix.verify.files.tree import READ, Row, Tree

FILE = Row(kind="file", mode=0o644, uid=0, gid=0, sha256=b"now")
OLD = Row(kind="file", mode=0o644, uid=0, gid=0, sha256=b"before")
FOLDER = "/usr/lib/x86_64-linux-gnu"
HONEST = [("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"), ("libm.so.6", f"{FOLDER}/libm.so.6")]


def cache_of(entries, flags=3):
    """Return a cache as ldconfig writes it: format 1.1, texts behind the entries."""
    texts, rows = b"", b""
    start = 48 + 24 * len(entries)
    for name, path, *kind in entries:
        at = start + len(texts)
        own, processor = kind or (flags, 0)
        rows += struct.pack("<iIIIQ", own, at, at + len(name) + 1, 0, processor)
        texts += f"{name}\0{path}\0".encode()
    return struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(entries), len(texts), 2, 0) + rows + texts


def pem(*bodies):
    return "".join(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in bodies).encode()


def image(**changed):
    made = Tree()
    made.texts = {
        "/etc/ld.so.cache": cache_of(HONEST),
        "/etc/ld.so.conf": b"include /etc/ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/x86_64-linux-gnu.conf": b"# both\n/usr/local/lib\n/lib/x86_64-linux-gnu\n",
        "/etc/ca-certificates.conf": b"# chosen\nmozilla/a.crt\n!mozilla/b.crt\n",
        "/usr/share/ca-certificates/mozilla/a.crt": pem("AAAA"),
        "/usr/share/ca-certificates/mozilla/b.crt": pem("BBBB"),
        "/etc/ssl/certs/ca-certificates.crt": pem("AAAA"),
    } | changed
    files = [*made.texts, f"{FOLDER}/libc.so.6", f"{FOLDER}/libm.so.6", "/usr/lib/libm.so.6", "/tmp/libc.so.6"]
    made.rows = dict.fromkeys(files, FILE)
    return made


def libraries(made):
    return list(scripts_output.strange_libraries(made, made.rows))


def certificates(made):
    return list(scripts_output.strange_certificates(made, made.rows))


def test_honest_cache_and_bundle_pass():
    assert libraries(image()) == [] and certificates(image()) == []
    assert libraries(Tree()) == [] and certificates(Tree()) == []


def old_format(entries):
    """The head of a cache of both formats; ld.so takes the new one at the next multiple of eight behind its entries."""
    return (b"ld.so-1.7.0\0" + struct.pack("<I", entries) + bytes(12 * entries)).ljust(-(-(16 + 12 * entries) // 8) * 8)


@pytest.mark.parametrize("entries", [0, 1, 2])
def test_cache_behind_one_of_the_old_format_is_read(entries):
    assert libraries(image(**{"/etc/ld.so.cache": old_format(entries) + cache_of(HONEST)})) == []


def test_honest_cache_in_front_of_the_one_that_is_loaded_hides_nothing():
    decoy = cache_of(HONEST)
    decoy += bytes(-len(decoy) % 12)
    loaded = cache_of([("libc.so.6", "/tmp/libc.so.6")])
    head = b"ld.so-1.7.0\0" + struct.pack("<I", len(decoy) // 12) + decoy
    found = libraries(image(**{"/etc/ld.so.cache": head + bytes(-len(head) % 8) + loaded}))
    assert any("/tmp/libc.so.6" in line for line in found)


def test_count_of_old_entries_has_no_sign():
    """Read as a negative number this one would lead to the honest cache, counted from the end."""
    honest = cache_of(HONEST)
    honest += bytes((8 - len(honest)) % 24)
    head = b"ld.so-1.7.0\0" + struct.pack("<i", -(len(honest) + 16) // 12)
    assert libraries(image(**{"/etc/ld.so.cache": head + honest})) == ["/etc/ld.so.cache: it is not of format 1.1"]


@pytest.mark.parametrize("cache", [b"ld.so-1.7.0", b"ld.so-1.7.0\0\xff\xff\xff\xff", b"x" + b"glibc-ld.so.cache1.1"])
def test_cache_that_ld_so_would_not_read_is_named(cache):
    assert libraries(image(**{"/etc/ld.so.cache": cache + cache_of(HONEST)})) != []


def test_files_that_are_read_are_kept_by_the_tree():
    assert all(READ.fullmatch(path) for path in image().texts)
    assert READ.fullmatch("/usr/local/share/ca-certificates/own.crt")


@pytest.mark.parametrize(
    "entry",
    [
        ("libc.so.6", "/tmp/libc.so.6"),  # a folder that no configuration names
        ("libc.so.6", f"{FOLDER}/libm.so.6"),  # another library under the name
        ("libgone.so.1", f"{FOLDER}/libgone.so.1"),  # not there
        ("libc.so.6", "/opt/venv/lib/libc.so.6"),  # not the system's
        ("libc.so.6", "libc.so.6"),  # found from the working folder
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_library_that_ldconfig_would_not_name_is_named(entry, first):
    entries = [entry, *HONEST] if first else [*HONEST, entry]
    assert libraries(image(**{"/etc/ld.so.cache": cache_of(entries)})) == [
        f"/etc/ld.so.cache: {entry[0]} is {entry[1]}"
    ]


def test_library_of_a_later_folder_before_that_of_an_earlier_one_is_named():
    later = ("libm.so.6", "/usr/lib/libm.so.6")
    assert libraries(image(**{"/etc/ld.so.cache": cache_of([*HONEST, later])})) == []
    swapped = image(**{"/etc/ld.so.cache": cache_of([later, *HONEST])})
    assert libraries(swapped) == [f"/etc/ld.so.cache: libm.so.6 is {FOLDER}/libm.so.6"]


def test_library_for_a_kind_of_processor_is_of_its_folder():
    path = f"{FOLDER}/glibc-hwcaps/x86-64-v3/libm.so.6"
    made = image(**{"/etc/ld.so.cache": cache_of([("libm.so.6", path)])})
    made.rows[path] = FILE
    assert libraries(made) == []


LOCAL = "/usr/local/lib/libm.so.6"  # the folder that the configuration names first


@pytest.mark.parametrize(
    ("entries", "strange"),
    [
        ([("libm.so.6", LOCAL)], []),
        ([("libm.so.6", LOCAL), HONEST[1], HONEST[1]], []),  # twice in one folder
        ([HONEST[1], ("libm.so.6", LOCAL)], [LOCAL]),
        ([("libm.so.6", "/tmp/libm.so.6"), ("libm.so.6", LOCAL)], ["/tmp/libm.so.6"]),
        ([(*HONEST[1], 3, 0), ("libm.so.6", LOCAL, 0x303, 0)], []),  # of another kind of file
        ([(*HONEST[1], 3, 0), ("libm.so.6", LOCAL, 3, 1 << 62)], []),  # for another kind of processor
        ([HONEST[0], ("libm.so.6", LOCAL)], []),
        ([("liblink.so", f"{FOLDER}/liblink.so")], []),
        ([("libfolder.so", f"{FOLDER}/libfolder.so")], [f"{FOLDER}/libfolder.so"]),
        ([*HONEST, ("glibc-ld.so.cache1.1", "/tmp/x")], ["/tmp/x"]),  # no second cache
    ],
)
def test_libraries_are_judged_by_folder_in_the_order_of_the_configuration_and_by_kind(entries, strange):
    made = image(**{
        "/etc/ld.so.cache": cache_of(entries),
        "/etc/ld.so.conf.d/x86_64-linux-gnu.conf": b"  /usr/local/lib/ \n/lib/x86_64-linux-gnu\n/usr/local/lib\n",
    })  # fmt: skip
    made.rows[LOCAL] = FILE
    made.rows[f"{FOLDER}/liblink.so"] = replace(FILE, kind="link")
    made.rows[f"{FOLDER}/libfolder.so"] = replace(FILE, kind="folder")
    names = {path: name for name, path, *_ in entries}
    assert libraries(made) == [f"/etc/ld.so.cache: {names[path]} is {path}" for path in strange]


def test_cache_and_bundle_that_are_there_without_a_text_are_named():
    made = image()
    del made.texts["/etc/ld.so.cache"], made.texts["/etc/ssl/certs/ca-certificates.crt"]
    assert libraries(made) == ["/etc/ld.so.cache: it is not of format 1.1"]
    assert certificates(made) == ["/etc/ssl/certs/ca-certificates.crt: 0 certificates of no package, 1 missing"]


@pytest.mark.parametrize(
    ("cache", "why"),
    [
        (b"", "it is not of format 1.1"),
        (b"x" * 100, "it is not of format 1.1"),
        (cache_of(HONEST)[:60], "it cannot be read"),
        (cache_of(HONEST)[:-1], "it has an entry without a text"),
        (cache_of(HONEST).replace(b"libm", b"\xff\xff\xff\xff"), "it cannot be read"),
    ],
)
def test_cache_that_cannot_be_read_is_named(cache, why):
    (place,) = libraries(image(**{"/etc/ld.so.cache": cache}))
    assert place.startswith("/etc/ld.so.cache: ") and why in place


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"/etc/ssl/certs/ca-certificates.crt": pem("AAAA", "EVIL")}, "1 certificates of no package, 0 missing"),
        ({"/etc/ssl/certs/ca-certificates.crt": pem("BBBB")}, "1 certificates of no package, 1 missing"),  # deselected
        ({"/etc/ssl/certs/ca-certificates.crt": b""}, "0 certificates of no package, 1 missing"),
        ({"/etc/ssl/certs/ca-certificates.crt": pem("AAAA") + b"more"}, "0 missing, other text"),
        ({"/etc/ca-certificates.conf": b"mozilla/a.crt\n../../../tmp/e.crt\n"}, "../../../tmp/e.crt is not there"),
    ],
)
def test_bundle_that_the_selection_does_not_make_is_named(changed, place):
    (found,) = certificates(image(**changed))
    assert found.endswith(place)


def test_certificates_are_compared_without_line_breaks_and_whatever_else_their_files_hold():
    made = image(**{
        "/etc/ca-certificates.conf": b"# chosen\n\n  \nmozilla/a.crt\nX/x.crt\n",
        "/usr/share/ca-certificates/X/x.crt": b"issued by \xe9\n" + pem("XX\nXX"),
        "/etc/ssl/certs/ca-certificates.crt": pem("AA\nAA", "XXXX"),
    })  # fmt: skip
    assert certificates(made) == []
    made.texts["/etc/ssl/certs/ca-certificates.crt"] += b"\xe9"
    (found,) = certificates(made)
    assert found.endswith(": 0 certificates of no package, 0 missing, other text")


@pytest.mark.parametrize(
    ("rows", "base", "differs"),
    [
        ({}, {}, False),
        ({}, {"/a": FILE}, False),
        ({"/a": FILE}, {}, True),
        ({"/a": FILE}, {"/a": FILE}, False),
        ({"/a": FILE}, {"/a": OLD}, True),
        ({"/a": FILE, "/b": FILE}, {"/a": FILE, "/b": OLD}, True),
        ({"/a": FILE, "/c": FILE}, {"/a": FILE}, False),  # not one of those compared
    ],
)
def test_paths_differ_where_one_of_them_has_other_bytes_than_the_base(rows, base, differs):
    assert scripts_output.differing(["/a", "/b"], rows, base) is differs


def test_certificate_of_a_base_is_of_its_bundle():
    own = {"/usr/local/share/ca-certificates/own.crt": pem("OWN")}
    assert certificates(image(**own, **{"/etc/ssl/certs/ca-certificates.crt": pem("AAAA", "OWN")})) == []


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        ("/etc/ld.so.cache", cache_of([("libc.so.6", "/tmp/libc.so.6")]), "libraries that the loader would take"),
        ("/etc/ssl/certs/ca-certificates.crt", pem("EVIL"), "certificates that are not the packages' own"),
    ],
)
def test_proof_names_what_differs_from_the_base_alone(path, content, what):
    made = image(**{path: content})
    base = system.Base(name="debian:1", layers=("base",), rows=made.rows | {path: OLD}, config={})
    layers = ["base", "packages", "environment", "trainer", "folder"]
    kinds = [finding.what for finding in system.check(made, layers, base).findings]
    assert any(kind.startswith(what) for kind in kinds)
    same = system.Base(name="debian:1", layers=("base",), rows=made.rows, config={})
    kinds = [finding.what for finding in system.check(made, layers, same).findings]
    assert not any(kind.startswith(what) for kind in kinds)
    kinds = [finding.what for finding in system.check(made, layers, None).findings]
    assert any(kind.startswith(what) for kind in kinds)
