"""What pip is asked for is the image's Python and platform; what it answers is read exactly."""

import pytest

from rocmatrix.images import pip_report
from rocmatrix.images.pip_report import Question
from rocmatrix.runtime.errors import RocmatrixError

REPORT = {
    "version": "1",
    "install": [
        {
            "download_info": {
                "url": "https://index.example/a/b/torch-2.9.1%2Brocm6.3-cp312-cp312-manylinux_2_28_x86_64.whl",
                "archive_info": {"hashes": {"sha256": "ab" * 32}},
            },
            "metadata": {"name": "torch", "version": "2.9.1+rocm6.3"},
        },
        {
            "download_info": {
                "url": "https://index.example/numpy-2.4.6-cp312-cp312-linux_x86_64.whl",
                "archive_info": {},
            },
            "metadata": {"name": "numpy", "version": "2.4.6"},
        },
    ],
}
UNREACHABLE = (
    "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor."
    "urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -2] Name or "
    "service not known')': /whl/rocm7.2/torch/\nERROR: Could not find a version that satisfies torch==9\n"
)


class Pip:
    """Stands in for pip: counts what it is asked and fails with what it is told to say."""

    def __init__(self, stderr):
        self.stdout, self.stderr, self.returncode, self.calls = "", stderr, 1, 0

    def __call__(self, argv, **_):
        self.calls += 1
        return self


def test_pip_is_requested_the_images_platform(tmp_path):
    question = Question(python="3.12", requirements=("numpy",), index="https://a.example/whl", links="/links")
    argv = pip_report.pip_argv(question, report=tmp_path / "r", target=tmp_path / "t")
    assert argv[argv.index("--python-version") + 1] == "3.12"
    assert argv[argv.index("--extra-index-url") + 1] == "https://a.example/whl"
    assert argv[argv.index("--find-links") + 1] == "/links"
    assert {"cp312", "manylinux_2_28_x86_64", "--dry-run", "--only-binary=:all:"} <= set(argv)
    assert argv[-1] == "numpy"


def test_report_gives_file_version_address_and_hash():
    numpy, torch = pip_report.parse_report(REPORT)
    assert (torch.file, torch.version) == ("torch-2.9.1+rocm6.3-cp312-cp312-manylinux_2_28_x86_64.whl", "2.9.1+rocm6.3")
    assert torch.sha256 == "ab" * 32
    assert "%2B" in torch.url
    assert numpy.sha256 is None


def test_resolver_that_gives_up_is_rm105(monkeypatch):
    monkeypatch.setattr(pip_report.subprocess, "run", Pip("ERROR: no versions of numpy satisfy this"))
    with pytest.raises(RocmatrixError, match="RM105") as caught:
        pip_report.query(Question(python="3.12", requirements=("numpy",)))
    assert "no versions of numpy" in str(caught.value)


def test_index_that_is_out_of_reach_is_queried_once(monkeypatch):
    pip = Pip(UNREACHABLE)
    monkeypatch.setattr(pip_report.subprocess, "run", pip)
    questions = [Question(python=p, requirements=("torch==9",), index="https://a.example") for p in ("3.11", "3.12")]
    answers = pip_report.query_all(questions)
    assert pip.calls == 1
    assert {answer.code for answer in answers.values()} == {"RM104"}
    assert answers[questions[1]].why == "https://a.example cannot be reached: [Errno -2] Name or service not known"


def test_index_without_the_version_is_queried_for_every_python(monkeypatch):
    pip = Pip("ERROR: No matching distribution found for torch==9")
    monkeypatch.setattr(pip_report.subprocess, "run", pip)
    questions = [Question(python=p, requirements=("torch==9",), index="https://a.example") for p in ("3.11", "3.12")]
    assert {answer.code for answer in pip_report.query_all([*questions, *questions]).values()} == {"RM105"}
    assert pip.calls == 2
