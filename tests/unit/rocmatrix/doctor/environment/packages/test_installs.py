"""What pip is asked for: names, versions, indexes, and what is an option's value."""

import pytest

from rocmatrix.doctor.environment.lint_input import Command
from rocmatrix.doctor.environment.packages.installs import installs


def of(text):
    return list(installs(Command(text=text, where="a:1")))


def test_values_of_options_are_no_packages():
    assert [one.name for one in of("pip install -r torch.txt --target lib -c vllm.txt torch numpy")] == [
        "torch",
        "numpy",
    ]
    assert [one.name for one in of("apt-get install torch && python3 -m pip install torch")] == ["torch"]


def test_index_of_rocm_is_read_with_how_it_is_queried():
    (one,) = of("pip install torch --extra-index-url https://download.pytorch.org/whl/rocm6.4")
    assert (one.rocm, one.extra, one.newest, one.indexed) == ("6.4", True, True, True)
    (one,) = of("uv pip install torch==2.9.1 --index-url=https://download.pytorch.org/whl/rocm6.4")
    assert (one.rocm, one.extra, one.exact) == ("6.4", False, "2.9.1")
    (one,) = of("pip install torch==2.9.1+rocm6.4")
    assert (one.rocm, one.local, one.indexed) == ("6.4", True, False)
    (one,) = of("pip install -U --no-deps My_Package")
    assert (one.name, one.rocm, one.alone, one.upgrade) == ("my-package", None, True, True)


def test_wheel_of_an_address_names_its_package():
    (one,) = of(
        "pip install https://repo.radeon.com/rocm/manylinux/rocm-rel-6.0/torch-2.1.1%2Brocm6.0-cp311-cp311-linux_x86_64.whl"
    )
    assert (one.name, one.rocm, one.newest) == ("torch", "6.0", False)


ROCM, PYPI = "https://download.pytorch.org/whl/rocm6.4", "https://pypi.example/simple"


@pytest.mark.parametrize(
    ("text", "mixed"),
    [
        (f"pip install torch --extra-index-url {ROCM}", True),
        (f"pip install torch --index-url {ROCM} --extra-index-url {PYPI}", True),
        (f"pip install torch --index-url={ROCM} --extra-index-url={ROCM.replace('6.4', '6.3')}", False),
        (f"pip install torch -i {ROCM}", False),
        (f"uv pip install torch --extra-index-url {ROCM}", False),
        (f"uv pip install --index-strategy unsafe-best-match torch --extra-index-url {ROCM}", True),
        (f"/v/bin/uv pip install --index-strategy=unsafe-best-match torch -i {ROCM} --extra-index-url {PYPI}", True),
        (f"uv pip install --index-strategy unsafe-best-match torch --index-url {ROCM}", False),
    ],
)
def test_index_of_rocm_with_another_one_is_read(text, mixed):
    assert [one.extra for one in of(text)] == [mixed]
