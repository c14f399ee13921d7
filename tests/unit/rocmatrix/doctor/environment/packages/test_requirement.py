"""Requirements that the shell or pip reads in another way than they were meant."""

import pytest

from rocmatrix.doctor.environment import scripts
from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.packages import requirement


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("pip install torch>=2.4 numpy", ["requirement-redirected"]),
        ("pip3 install numpy transformers<5", ["requirement-redirected"]),
        ("pip install 'torch>=2.4' \"numpy<2\"", []),
        ("pip install torch==2.4.0 > log.txt 2>&1", []),
        ("echo 1 <2 && pip install torch", []),
        ("pip install 'torch>=2.0.0+rocm5.4.2,<=2.1.0+rocm5.6'", ["local-version-in-range"]),
        ("pip install 'torch>=2.0.0,<=2.1.0+rocm5.6'", ["local-version-in-range"]),
        ("pip install 'torch==2.1.0+rocm5.6' 'numpy>=1.2'", []),
        ("pip install torch!=2.1.0+rocm5.6", []),
    ],
)
def test_command_is_read_as_a_shell_and_pip_read_it(text, rules):
    assert [one.rule for one in requirement.of_command(Command(text=text, where="a:1"))] == rules


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("torch --index-url https://x/whl/rocm6.4", True),
        ("torch; --extra-index-url https://x; sys_platform == 'linux'", True),
        ("torch --find-links=https://x", True),
        ("--index-url https://x", False),
        ("torch==2.9.1+rocm6.4 ; sys_platform == 'linux'", False),
        ("torch @ https://x/torch.whl", False),
    ],
)
def test_option_behind_a_package_is_refused_by_pip(row, found):
    assert [one.rule for one in requirement.of_requirement(row, "a:1")] == (["option-in-requirement"] if found else [])


@pytest.mark.parametrize(
    ("requirement_text", "instead"),
    [
        ("torch>=2.0.0+rocm5.4.2,<=2.1.0+rocm5.6", "install torch first, in a command or file of its own with "
         "--index-url https://download.pytorch.org/whl/rocm5.6, then the rest"),
        ("torchvision<=0.16.0+rocm5.6", "install torchvision first, in a command or file of its own with "
         "--index-url https://download.pytorch.org/whl/rocm5.6, then the rest"),
        ("flash-attn>=2.0.0+rocm6.4", None),
    ],
)  # fmt: skip
def test_advice_on_a_local_version_names_the_release_of_the_line(requirement_text, instead):
    (one,) = requirement.of_command(Command(text=f"pip install '{requirement_text}'", where="a:1"))
    general = "== with the whole version, or a range without the local part"
    assert one.instead == (f"{general}: {instead}" if instead else general)
    assert requirement_text.rpartition("+")[2] in one.truth


def test_advice_on_an_index_behind_a_package_leaves_the_others_theirs():
    row = 'torch; --index-url https://download.pytorch.org/whl/rocm5.7; sys_platform == "linux"'
    (one,) = requirement.of_requirement(row, "a:1")
    assert one.instead == (
        "install torch first, in a command or file of its own with "
        "--index-url https://download.pytorch.org/whl/rocm5.7, then the rest"
    )
    (one,) = requirement.of_requirement("torch --extra-index-url https://x", "a:1")
    assert one.instead == "--extra-index-url on a line of its own"


def test_hostile_requirement_lines_are_read_in_bounded_time():
    for text in (
        "pip install " + "a>" * 50_000,
        "install " + "a" * 100_000,
        "pip install " + "a==1," * 30_000,
        "a " * 50_000,
        "pip install " + "a>1+b" * 20_000,
    ):
        assert list(requirement.of_command(Command(text=text, where="a:1"))) is not None
        assert list(requirement.of_requirement(text, "a:1")) is not None


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("torch @ file:///mnt/wheels/torch-2.4.0-cp312-cp312-linux_x86_64.whl#sha256=00", True),
        ("numpy[a] @ file:///croot/numpy_1/work", True),
        ("torch @ https://example.org/torch-2.4.0-cp312-cp312-linux_x86_64.whl", False),
        ("./wheels/torch-2.4.0-cp312-cp312-linux_x86_64.whl", False),
    ],
)
def test_file_of_one_machine_is_reported(row, found):
    notes = [(note.rule, note.severity) for note in requirement.of_one_machine(row, "a:1")]
    assert notes == ([("path-of-one-machine", "warning")] if found else [])


def test_file_of_one_machine_is_reported_once(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("numpy\na @ file:///x/a\nb @ file:///x/b\n")
    assert [(note.rule, note.where) for note in scripts.of_file(path)[0].notes] == [
        ("path-of-one-machine", f"{path}:2")
    ]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ("https://a.example/exl-0.1+rocm6.2-cp310-cp310-linux_x86_64.whl", ["a:2"]),
        ('https://a.example/exl-0.1+rocm6.2-cp310-cp310-linux_x86_64.whl ; python_version == "3.10"', []),
        ("https://a.example/exl-0.1+rocm6.2-cp311-cp311-manylinux_2_28_x86_64.whl", []),
        ("https://a.example/other-0.1-cp310-cp310-linux_x86_64.whl", []),
    ],
)
def test_wheels_of_one_package_for_two_pythons_are_an_error(second, found):
    rows = (("https://a.example/exl-0.1+rocm6.2-cp311-cp311-linux_x86_64.whl", "a:1"), (second, "a:2"))
    assert [note.where for note in requirement.of_wheels(rows)] == found
