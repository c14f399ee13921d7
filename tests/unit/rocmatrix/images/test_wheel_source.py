"""What is taken for a package of torch and ROCm, from which host, and with which hash. Indexes are STAND-INS."""

import hashlib
import http.client
import http.server
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from types import MappingProxyType

import pytest

from rocmatrix.images import wheel_source
from rocmatrix.images.pip_report import Resolved
from rocmatrix.runtime.errors import RocmatrixError

TODAY = date(2026, 11, 21)
FILE = "torch-2.13.0+rocm7.2-cp312-cp312-linux_x86_64.whl"
CONTENT = b"STAND-IN wheel" * 100_000  # more than one piece
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `pages` by path; what is in `short` breaks off one byte before its stated end."""

    pages: Mapping[str, bytes] = MappingProxyType({})
    short: frozenset[str] = frozenset()

    def do_GET(self):
        content = self.pages.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + (self.path in self.short)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def serving(pages, short=()):
    handler = type("Handler", (Handler,), {"pages": pages, "short": frozenset(short)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def row(url, *, name="torch", sha256=None, file=FILE):
    return Resolved(file=file, name=name, version="2.13.0+rocm7.2", url=url, sha256=sha256)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *((name, True) for name in ("torch", "Torch", "torchvision", "torchaudio", "triton", "pytorch-triton")),
        *((name, True) for name in ("triton-rocm", "pytorch_triton_rocm", "rocm", "rocm-sdk-core", "amd-torch-x")),
        *((name, False) for name in ("numpy", "torchtext", "my-torch", "rocmlib", "amd-torch-", "tritonclient")),
    ],
)
def test_package_is_of_the_stack_by_its_name(name, own):
    assert wheel_source.of_stack(name) is own


@pytest.mark.parametrize("channel", wheel_source.UNRELEASED)
def test_channel_of_candidates_is_refused_in_any_place(channel):
    place = f"https://{channel}".replace("https:///", "https://x/").rstrip("/")
    with pytest.raises(RocmatrixError) as caught:
        wheel_source.refuse_unreleased("numpy-1.whl", ["a lock", place], today=TODAY)
    assert (caught.value.code, caught.value.what, caught.value.where) == ("RM106", "numpy-1.whl", place)


def test_expired_candidate_names_its_day_and_a_released_file_is_taken():
    wheel_source.refuse_unreleased(FILE, ["https://download.pytorch.org/whl/rocm7.2", ""], today=TODAY)
    with pytest.raises(RocmatrixError, match="RM107") as caught:
        wheel_source.refuse_unreleased("rocm-7.0a20260723.whl", ["x/whl/nightly/"], today=TODAY)
    assert caught.value.why == "built 2026-07-23; such an index keeps a file for 120 days"
    assert (caught.value.what, caught.value.where) == ("rocm-7.0a20260723.whl", "x/whl/nightly/")
    with pytest.raises(RocmatrixError, match="RM106"):
        wheel_source.refuse_unreleased("rocm-7.0a20260724.whl", ["x/whl/nightly/"], today=TODAY)


def test_wheel_of_the_python_index_has_the_hash_that_pip_reports():
    numpy = row("https://files.example/numpy-1.whl", name="numpy", sha256="ab" * 32)
    for index in (None, "https://download.pytorch.org/whl/rocm7.2"):
        made = wheel_source.wheel(numpy, index=index, today=TODAY)
        assert (made.name, made.version, made.sha256) == ("numpy", "2.13.0+rocm7.2", "ab" * 32)
        assert (made.index, made.sources, made.confidence) == (
            "python", ["the Python package index, as pip reported it"], "verified in source",
        )  # fmt: skip
    assert wheel_source.wheel(replace(numpy, name="torch"), index=None, today=TODAY).index == "python"


def test_wheel_without_a_hash_is_read_and_measured():
    with serving({f"/{FILE}".replace("+", "%2B"): CONTENT}) as address:
        url = f"{address}/{FILE}".replace("+", "%2B")
        made = wheel_source.wheel(row(url, name="numpy"), index=None, today=TODAY)
    place = address.removeprefix("http://")
    assert (made.sha256, made.index, made.confidence) == (SHA256, "python", "measured here")
    assert made.sources == [f"{place}/{FILE} itself, hash computed 2026-11-21"]


@pytest.mark.parametrize(
    ("index", "url", "taken"),
    [
        ("https://download.pytorch.org/whl/rocm7.2", "https://download.pytorch.org/x.whl", True),
        ("https://download.pytorch.org/whl/rocm7.2", "https://download-r2.pytorch.org/x.whl", True),
        ("https://repo.example/whl", "https://download-r2.pytorch.org/x.whl", False),
        ("https://download.pytorch.org/whl/rocm7.2", "https://files.example/x.whl", False),
    ],
)
def test_torch_is_taken_from_the_releases_own_host_alone(index, url, taken, monkeypatch):
    monkeypatch.setattr(wheel_source, "served_hash", lambda *_: "cd" * 32)
    if taken:
        made = wheel_source.wheel(row(url, sha256="ab" * 32), index=index, today=TODAY)
        assert (made.sha256, made.index, made.confidence) == ("cd" * 32, "pytorch", "verified in source")
        assert made.sources == [f"{index.removeprefix('https://')}, as the index states it"]
        return
    with pytest.raises(RocmatrixError, match="RM108") as caught:
        wheel_source.wheel(row(url), index=index, today=TODAY)
    assert (caught.value.what, caught.value.where) == (FILE, index)
    assert caught.value.why == f"pip chose {url}; a package of that name elsewhere is not the one"


def test_index_of_candidates_is_refused_though_the_file_is_served_elsewhere():
    with pytest.raises(RocmatrixError, match="RM106"):
        wheel_source.wheel(row("https://x/y"), index="https://download.pytorch.org/whl/nightly", today=TODAY)
    with pytest.raises(RocmatrixError, match="RM107"):
        wheel_source.wheel(row("https://x/whl/test/y", file="rocm-7.0a20200101.whl"), index=None, today=TODAY)


LINK = FILE.replace("+", "%2B")


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (f'<a href="/x/{LINK}#sha256=abc">', "abc"),
        (f'<a href="https://h/{FILE}#sha256=abc&amp;d">', "abc&d"),
        (f'<a href="{LINK}">', None),
        (f'<a href="{LINK}#md5=abc">', None),
        (f'<a href="{LINK}x#sha256=abc">', None),
        (f'<a href="other.whl#sha256=no"><a href="{LINK}#sha256=a#sha256=b">', "a#sha256=b"),
        ("\ud800".encode(errors="surrogatepass").decode(errors="replace"), None),
    ],
)
def test_hash_of_an_index_is_that_of_the_file_of_exactly_this_name(page, found, monkeypatch):
    monkeypatch.setattr(wheel_source, "CHUNK_BYTES", 7)  # a page of many pieces
    content = page.encode() + b"\xff"
    with serving({"/whl/torch/": content, "/wX/torch/": content}) as address:
        for index in (f"{address}/whl", f"{address}/whl//", f"{address}/wX", f"{address}/wX/"):
            assert wheel_source.served_hash(index, row("x", name="Torch")) == found


def test_index_in_a_folder_has_its_page_in_a_file(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "index.html").write_text(f'<a href="{LINK}#sha256=abc">')
    assert wheel_source.served_hash(tmp_path.as_uri(), row("x")) == "abc"


def test_file_without_a_hash_on_its_index_is_measured_unless_pip_has_done_so():
    with serving({"/whl/torch/": b"", f"/whl/torch/{LINK}": CONTENT}) as address:
        known = row(f"{address}/whl/torch/{LINK}", sha256="ab" * 32)
        found = [
            wheel_source.wheel(each, index=f"{address}/whl", today=TODAY)
            for each in (known, replace(known, sha256=None))
        ]
    assert [(each.sha256, each.index, each.confidence) for each in found] == [
        ("ab" * 32, "pytorch", "measured here"),
        (SHA256, "pytorch", "measured here"),
    ]


@pytest.mark.parametrize(
    "fetch", [wheel_source.computed_hash, lambda url: wheel_source.served_hash(url[:-7], row("x"))]
)
def test_file_that_breaks_off_or_is_not_there_is_rm104(fetch):
    with serving({"/torch/": CONTENT}, short=["/torch/"]) as address:
        with pytest.raises(RocmatrixError, match="RM104") as caught:
            fetch(f"{address}/torch/")
        assert caught.value.what == f"{address}/torch/"
        assert "1,400,000 of 1,400,001 bytes" in caught.value.why
        with pytest.raises(RocmatrixError, match="RM104") as caught:
            fetch(f"{address}/a/torch/")
    assert "404" in caught.value.why


def test_place_of_a_file_on_this_machine_is_its_name():
    assert wheel_source._place("file:///home/me/wheels/a.whl") == "a.whl"
    assert wheel_source._place("https://h/a/b/?x#y") == "h/a/b"
    assert wheel_source._place("https://h/aX/") == "h/aX"


def test_index_that_does_not_answer_is_waited_for_ten_seconds(monkeypatch):
    def late(url, timeout):
        raise TimeoutError(f"{url} after {timeout} s")

    monkeypatch.setattr(wheel_source, "urlopen", late)
    with pytest.raises(RocmatrixError, match="RM104") as caught:
        wheel_source.computed_hash("https://h/a")
    assert (caught.value.what, caught.value.why) == ("https://h/a", "https://h/a after 10 s")


def test_answer_of_another_protocol_is_rm104(monkeypatch):
    def broken(*_, **__):
        raise http.client.BadStatusLine("x")

    monkeypatch.setattr(wheel_source, "urlopen", broken)
    with pytest.raises(RocmatrixError, match="RM104"):
        wheel_source.computed_hash("https://h/a")
