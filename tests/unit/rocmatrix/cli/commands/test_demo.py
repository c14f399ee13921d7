"""The tour runs its commands as typed and links their results; its page is small, whole and without a script."""

import html
import io
import re
import subprocess
import sys
import time
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rocmatrix.cli.commands import demo
from rocmatrix.cli.commands.demo import Demo
from rocmatrix.cli.options.command import known
from tests.fixtures.browser import violations

VOID = {"meta"}


class Links(HTMLParser):
    """Collects links and targets, and fails on a tag that is not closed where it should be."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.ids = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.open += [tag] * (tag not in VOID)
        found = dict(attributes)
        self.links += [found["href"]] if "href" in found else []
        self.ids |= {found["id"]} if "id" in found else set()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def stand_in(monkeypatch):
    """Let every stage print its words, and the stage named fail; return what was run."""
    ran = []

    def run(argv, stderr):
        words = argv[argv.index("--search-root") + 2 :]
        ran.append(words)
        if words[0] == run.stopped:
            raise KeyboardInterrupt
        return 3 if words[0] == run.failing else 0, f"<b>{words[0]}</b>\n"

    run.failing = run.stopped = ""
    monkeypatch.setattr(demo, "_to_its_end", run)
    return run, ran


def test_page_links_what_every_stage_left(stand_in, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, ran = stand_in
    out = io.StringIO()
    with redirect_stdout(out):
        demo.demo(Demo())
    text = (tmp_path / "DEMO" / "index.html").read_text()
    found = Links()
    found.feed(text)
    assert found.open == []
    assert {"run/metadata.json", "report.html", "failed.log"} <= {*found.links}
    assert {link[1:] for link in found.links if link.startswith("#")} <= found.ids
    assert "&lt;b&gt;train&lt;/b&gt;" in text
    assert "<script" not in text
    assert [words[0] for words in ran] == ["train", "report", "explain", "diagnose"]
    assert out.getvalue().startswith("page    DEMO/index.html (")
    assert (tmp_path / "DEMO" / "failed.log").read_text().startswith("SYNTHETIC")


@pytest.mark.parametrize(("width", "dark"), [(360, True), (768, True), (1280, False)])
def test_page_of_the_demo_has_no_violation_that_axe_knows(tmp_path, width, dark):
    ended = [
        demo.Ended(stage=stage, status=number == 2, seconds=1.0, text="word " * 90)
        for number, stage in enumerate(demo.stages(demo.Path("DEMO"), "MI50"))
    ]
    assert violations(demo.page(ended), folder=tmp_path, width=width, dark=dark) == []


def test_command_on_the_page_keeps_its_flags_whole_and_is_copied_as_it_was_run():
    stages = demo.stages(demo.Path("DEMO"), "MI50")
    page = demo.page([demo.Ended(stage=stage, status=0, seconds=1.0, text="") for stage in stages])
    assert '<span class="kept">--output</span>' in page
    shown = [html.unescape(re.sub("<[^>]+>", "", code)) for code in re.findall(r"<p><code>(.*?)</code>", page)]
    assert shown == [stage.command for stage in stages]


def test_stage_is_a_task_with_these_options():
    for stage in demo.stages(demo.Path("DEMO"), "RX 7900 XT"):
        task, *words = stage.arguments
        flags = {f"--{flag.name}" for flag in known()[task].flags}
        assert {word for word in words if word.startswith("--")} <= flags


@pytest.mark.parametrize(("text", "kept"), [("a\n    b\n", True), ("a" * 120, False)])
def test_lines_that_the_program_broke_are_not_broken_again(text, kept):
    stage = demo.stages(Path("DEMO"), "MI50")[2]
    page = demo.page([demo.Ended(stage=stage, status=0, seconds=1.0, text=text)])
    assert ('class="laid-out"' in page) == kept


def test_stage_that_fails_is_named_and_stands_open_in_the_page(stand_in, tmp_path, capsys):
    run, ran = stand_in
    run.failing = "report"
    with pytest.raises(SystemExit, match="2"):
        demo.demo(Demo(out=str(tmp_path / "d")))
    assert "RM654" in (stderr := capsys.readouterr().err)
    assert "Its report" in stderr
    text = (tmp_path / "d" / "index.html").read_text()
    assert "ended with 3" in text
    assert 'href="report.html"' not in text
    assert len(ran) == 4


def test_folder_of_something_else_is_left_and_an_earlier_demo_is_replaced(stand_in, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        demo.demo(Demo(out=str(tmp_path / "mine")))
    assert "RM653" in capsys.readouterr().err
    assert (tmp_path / "mine" / "file").exists()
    for _ in range(2):
        demo.demo(Demo(out=str(tmp_path / "new")))
        assert not (tmp_path / "new" / "left").exists()
        (tmp_path / "new" / "left").touch()


def test_synthetic_log_has_a_known_cause(tmp_path):
    (tmp_path / "log").write_text(demo.SYNTHETIC_LOG)
    argv = [sys.executable, "-P", str(demo.ROOT / "rocmatrix/cli/program.py"), "--search-root", str(demo.ROOT)]
    done = subprocess.run(
        [*argv, "diagnose", str(tmp_path / "log"), "--gpu", "RX 7900 XT"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_progress_line_is_kept_in_its_last_state():
    assert demo._lines(b"a\r\ntrain 1%\rtrain 100%\r\nend\r\n") == "a\ntrain 100%\nend\n"


def test_demo_that_is_stopped_leaves_nothing(stand_in, tmp_path, capsys):
    run, _ = stand_in
    run.stopped = "report"
    with pytest.raises(SystemExit) as ended:
        demo.demo(Demo(out=str(tmp_path / "DEMO")))
    assert ended.value.code == 130
    assert list(tmp_path.iterdir()) == []
    assert "DEMO is removed, so there is no training to resume: start ./invokew demo again" in capsys.readouterr().err


def test_stage_ends_with_the_demo_when_a_scheduler_stops_it(tmp_path):
    program = "import os, signal, time\nos.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(60)"
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        demo._to_its_end([sys.executable, "-c", program], subprocess.DEVNULL)
    assert time.monotonic() - began < 30
