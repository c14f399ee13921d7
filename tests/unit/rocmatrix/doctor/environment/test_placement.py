"""Images, what is installed into them and how they are started: mistakes are found before the run."""

import pytest

from rocmatrix.doctor.environment import compose, dockerfile, lint, scripts
from rocmatrix.doctor.environment import rules as environment_rules
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.placement import misplaced
from tests.fixtures.cells import MATRIX
from tests.unit.rocmatrix.diagnosis.known import ROOT

ON_AMD = "devices: [/dev/kfd, /dev/dri]"


def rules(subjects):
    """Return the rules, less the notes on what changes from day to day, which have tests of their own."""
    own = ("image-moves", "version-not-pinned")
    return [finding.rule for finding in misplaced(subjects, MATRIX) if finding.rule not in own]


def of_dockerfile(tmp_path, text):
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    return rules(dockerfile.of_dockerfile(path))


def of_compose(tmp_path, *rows):
    path = tmp_path / "compose.yaml"
    path.write_text("services:\n  one:\n" + "".join(f"    {row}\n" for row in rows))
    return rules(compose.of_compose(path, shell={}))


def test_torch_of_the_default_index_on_a_plain_image_is_a_cuda_wheel(tmp_path):
    assert of_dockerfile(tmp_path, "FROM python:3.12\nRUN pip install torch\n") == ["torch-from-default-index"]


@pytest.mark.parametrize(
    "text",
    [
        "FROM rocm/pytorch:latest\nRUN pip install torch\n",
        "FROM python:3.12\nRUN pip install torch --index-url https://download.pytorch.org/whl/rocm6.4\n",
        "FROM python:3.12\nRUN pip install 'torch==2.9.1+rocm6.4'\n",
        "FROM python:3.12\nRUN pip install numpy\n",
        "ARG BASE\nFROM $BASE\nRUN pip install torch\n",
    ],
)
def test_torch_of_a_rocm_index_or_on_a_rocm_image_is_let_be(tmp_path, text):
    assert "torch-from-default-index" not in of_dockerfile(tmp_path, text)


def test_tag_that_lacks_python_and_torch_was_never_published(tmp_path):
    assert of_dockerfile(tmp_path, "FROM rocm/pytorch:rocm6.0_ubuntu22.04\n") == ["image-tag-form"]
    whole = "FROM rocm/pytorch:rocm6.1.3_ubuntu22.04_py3.10_pytorch_release-2.1.2\n"
    assert of_dockerfile(tmp_path, whole) == []
    assert of_dockerfile(tmp_path, "FROM rocm/pytorch:latest\n") == []


def test_torchvision_of_another_torch_is_found_and_its_own_is_let_be(tmp_path):
    index = "--index-url https://download.pytorch.org/whl/rocm6.4"
    wrong = f"FROM python:3.12\nRUN pip install torch==2.9.1 torchvision==0.23.0 {index}\n"
    assert of_dockerfile(tmp_path, wrong) == ["torchvision-of-another-torch"]
    assert of_dockerfile(tmp_path, wrong.replace("0.23.0", "0.24.1")) == []


def test_companion_that_a_rule_calls_broken_on_the_images_rocm_is_found(tmp_path):
    image = "FROM rocm/pytorch:rocm{}_ubuntu22.04_py3.10_pytorch_release_2.6.0\nRUN pip install bitsandbytes\n"
    assert of_dockerfile(tmp_path, image.format("6.1")) == ["bitsandbytes-before-rocm-6.2"]
    assert of_dockerfile(tmp_path, image.format("6.4")) == []


def test_companion_of_another_rocm_is_found_by_its_version(tmp_path):
    image = "FROM rocm/pytorch:rocm{}_ubuntu22.04_py3.10_pytorch_release_2.6.0\nRUN pip install '{}'\n"
    other = ["companion-of-another-rocm"]
    assert of_dockerfile(tmp_path, image.format("6.3", "bitsandbytes")) == other
    assert of_dockerfile(tmp_path, image.format("6.3", "bitsandbytes==0.50.2")) == other
    assert of_dockerfile(tmp_path, image.format("6.4", "bitsandbytes==0.49.2")) == other
    found = {row.severity for row in misplaced(dockerfile.of_dockerfile(tmp_path / "Dockerfile"), MATRIX)}
    assert found == {"note"}  # that version holds libraries up to ROCm 7.2
    assert of_dockerfile(tmp_path, image.format("6.3", "bitsandbytes==0.49.2")) == []
    assert of_dockerfile(tmp_path, image.format("6.3", "bitsandbytes<0.50")) == []


def test_cuda_image_with_amd_devices_is_found_and_without_them_let_be(tmp_path):
    rows = ("image: vllm/vllm-openai:latest", "ipc: host")
    assert of_compose(tmp_path, *rows, ON_AMD) == ["cuda-image"]
    assert of_compose(tmp_path, *rows) == []
    assert of_compose(tmp_path, "image: vllm/vllm-openai-rocm:latest", "ipc: host", ON_AMD) == []


def test_devices_groups_and_shared_memory_of_a_service_are_examined(tmp_path):
    assert of_compose(tmp_path, "image: a", "ipc: host", "devices: [/dev/dri]") == ["kfd-not-given"]
    assert of_compose(tmp_path, "image: a", "ipc: host", "devices: [/dev/kfd, /dri]") == ["device-path"]
    assert of_compose(tmp_path, "image: a", "ipc: host", ON_AMD, "user: '1000'") == ["groups-not-given"]
    assert of_compose(tmp_path, "image: a", "ipc: host", ON_AMD, "user: '1000'", "group_add: ['$GID']") == []
    assert of_compose(tmp_path, "image: a", ON_AMD) == ["shared-memory-small"]
    assert of_compose(tmp_path, "image: a", ON_AMD, "shm_size: 8g") == []
    assert of_compose(tmp_path, "image: a") == []


def test_image_for_vulkan_needs_no_kfd(tmp_path):
    image = "image: ghcr.io/ggml-org/llama.cpp:server-{}"
    assert of_compose(tmp_path, image.format("vulkan"), "devices: [/dev/dri]") == []
    assert of_compose(tmp_path, image.format("rocm"), "devices: [/dev/dri]") == ["kfd-not-given"]


def test_encoder_of_video_without_an_image_of_its_own_needs_no_kfd(tmp_path):
    path = tmp_path / "docker-compose.amd.yml"
    for service, found in (("handbrake-encoder", False), ("trainer", True)):
        path.write_text(f"services:\n  {service}:\n    devices: [/dev/dri]\n")
        assert ("kfd-not-given" in rules(compose.of_compose(path, shell={}))) is found


GIVEN = ROOT.parent / "shared" / "data" / "lint"


@pytest.mark.skipif(
    not GIVEN.is_dir(), reason="the public files that the linter is measured on are not beside this checkout"
)
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Dockerfile.bad", {"torch-from-default-index", "companion-of-another-rocm", "rocm-release-old"}),
        ("bad.yml", {"image-tag-form", "kfd-not-given", "shared-memory-small", "releases-differ", "rocm-release-old"}),
        ("13-Dockerfile.axolotl-amd", {"bitsandbytes-before-rocm-6.2", "rocm-release-old", "torch-may-be-replaced"}),
        ("14-Dockerfile.prizm", {"bitsandbytes-before-rocm-6.2"}),
        ("15-env.bestbox.yml", {"cuda-image", "device-path", "render-group-missing"}),
        ("06-nvidia.yml", set()),
        ("17-sglang.yml", {"privileged-with-devices", "shm-size-without-effect"}),  # notes
    ],
)
def test_files_of_others_show_what_was_missed_before(name, found):
    path = GIVEN / name
    subjects = compose.of_compose(path, shell={}) if name.endswith("yml") else dockerfile.of_dockerfile(path)
    assert set(rules(subjects)) == found


def test_rules_for_different_versions_are_one_finding_where_the_version_is_not_known(tmp_path):
    path = tmp_path / "Dockerfile"
    path.write_text("FROM a\nENV PYTORCH_HIP_ALLOC_CONF=expandable_segments:True\n")
    found = lint.lint(dockerfile.of_dockerfile(path), environment_rules.load(ROOT))
    assert len(found) == 1
    assert "with torch <2.12: " in found[0].truth
    assert "with torch >=2.12 and with ROCm >=7.0: " in found[0].truth


def of_requirements(tmp_path, text):
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    return rules(scripts.of_file(path))


EXTRA = "--extra-index-url https://download.pytorch.org/whl/rocm6.4\n"


def test_index_of_rocm_next_to_pypi_lets_pip_take_the_cuda_wheel(tmp_path):
    assert of_requirements(tmp_path, EXTRA + "numpy\ntorch\n") == ["torch-index-next-to-pypi"]
    assert of_requirements(tmp_path, EXTRA + "torch==2.9.1+rocm6.4\n") == []
    assert of_requirements(tmp_path, EXTRA + "torch==2.9.1\n") == []  # the index's 2.9.1+rocm6.4 counts as higher
    assert of_requirements(tmp_path, EXTRA.replace("extra-", "") + "torch\n") == []
    assert of_dockerfile(tmp_path, f"FROM python:3.12\nRUN uv pip install {EXTRA.strip()} torch\n") == []


def test_version_of_rocm_without_its_index_is_not_found(tmp_path):
    assert of_requirements(tmp_path, "torch==2.9.1+rocm6.4\n") == ["local-version-without-index"]
    assert of_dockerfile(tmp_path, "FROM python:3.12\nRUN pip install torch==2.9.1+rocm6.4\n") == []


def test_privileged_next_to_the_devices_is_noted(tmp_path):
    assert "privileged-with-devices" in of_compose(tmp_path, "image: rocm/dev", ON_AMD, "privileged: true")
    assert of_compose(tmp_path, "image: rocm/dev", "privileged: true") == []


def test_finding_of_a_requirement_names_its_own_line(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text(EXTRA + "numpy\n\ntorch\n")
    places = [(finding.rule, finding.where) for finding in misplaced(scripts.of_file(path), MATRIX)]
    assert places == [("torch-index-next-to-pypi", f"{path}:4"), ("version-not-pinned", f"{path}:4")]


HELD = "pip install torch torchvision --extra-index-url https://download.pytorch.org/whl/rocm6.4"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile", f"FROM rocm/dev-ubuntu-24.04:6.4\nENV TORCH_COMMAND='{HELD}'\n"),
        ("webui-user.sh", f'export TORCH_COMMAND="{HELD}"\n'),
        ("compose.yaml", f"services:\n  one:\n    image: a/b-rocm:1\n    environment:\n      TORCH_COMMAND: {HELD}\n"),
    ],
)
def test_install_that_a_variable_holds_for_another_program_is_judged_as_one(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    subjects = recognise.subjects(path, shell={}, matrix=MATRIX)
    rows = [finding for finding in misplaced(subjects, MATRIX) if finding.rule == "torch-index-next-to-pypi"]
    assert len(rows) == 1
    assert text.splitlines()[int(rows[0].where.rpartition(":")[2]) - 1].strip().endswith(("'", '"', "rocm6.4"))


@pytest.mark.parametrize(
    ("image", "wrong"),
    [
        ("ghcr.io/invoke-ai/invokeai:latest", True), ("ghcr.io/invoke-ai/invokeai", True),
        ("ghcr.io/invoke-ai/invokeai:v5.12-rocm", False), ("lmsysorg/sglang:v0.4.6", True),
        ("lmsysorg/sglang:v0.4.6.post1-rocm630", False), ("localai/localai:latest-gpu-nvidia-cuda-12", True),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", True), ("ghcr.io/ggml-org/llama.cpp:server-rocm", False),
    ],
)  # fmt: skip
def test_image_of_cuda_in_a_service_with_amd_devices_is_an_error(tmp_path, image, wrong):
    assert ("cuda-image" in of_compose(tmp_path, f"image: {image}", ON_AMD)) is wrong
