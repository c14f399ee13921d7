"""What a script writes with heredocs is read as the file that it becomes."""

import pytest

from rocmatrix.doctor.environment import lint, placement, rules
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.shell import heredocs
from rocmatrix.runtime.paths import ROOT
from tests.fixtures.cells import MATRIX


def linted(path, text):
    path.write_text(text)
    subjects = recognise.subjects(path, shell={})
    found = (*lint.lint(subjects, rules.load(ROOT)), *placement.misplaced(subjects, MATRIX))
    return {(one.rule, int(one.where.rpartition(":")[2])) for one in found if one.severity != "note"}


UNIT = '[Service]\nEnvironment="HSA_OVERRIDE_GFX_VERSION=gfx1100"\n'
COMPOSE = "services:\n  a:\n    image: rocm/app:1\n    ipc: host\n    devices: [/dev/dri]\n"
POD = (
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
    "  - image: rocm/app:1\n    resources: {limits: {amd.com/gpu: 0.5}}\n"
)


@pytest.mark.parametrize(
    ("opened", "body", "found"),
    [
        ("cat > /etc/systemd/system/a.service.d/gpu.conf <<'EOF'", UNIT, {("override-malformed", 4)}),
        ("sudo tee /etc/systemd/system/a.service > /dev/null <<EOF", UNIT, {("override-malformed", 4)}),
        ("cat <<EOF | sudo tee -a ~/.config/x.conf", UNIT, {("override-malformed", 4)}),
        ("cat <<-EOF > docker-compose.yml", COMPOSE, {("kfd-not-given", 7)}),
        ("cat >Dockerfile.rocm <<EOF", "FROM rocm/app:1\nENV HSA_OVERRIDE_GFX_VERSION=\\$X 1\n", set()),
        ("cat >Dockerfile.rocm <<EOF", "FROM python:3.12\nRUN pip install torch\n", {("torch-from-default-index", 4)}),
        ("kubectl apply -f - <<EOF", POD, {("k8s-gpu-fraction", 8)}),
        ("cat > requirements.txt << EOF", "torch==2.9.1+rocm6.4\n", {("local-version-without-index", 3)}),
        ("cat > .env <<EOF", "HIP_VISIBLE_DEVICES=all\n", {("visible-devices-no-list", 3)}),
        ("cat > job.sh <<EOF", "#!/bin/sh\ndocker run --ipc=host --device /dev/dri a\n", {("kfd-not-given", 4)}),
        ("ssh node bash <<EOF", "docker run --ipc=host --device /dev/dri a\n", {("kfd-not-given", 3)}),
        ("cat <<EOF", "usage: docker run --ipc=host --device /dev/dri a\n", set()),
        ("python3 <<EOF", "HIP_VISIBLE_DEVICES='all'\n", set()),
        ("cat > values.yaml <<EOF", "{{- if .x }}\na: [\n", set()),
    ],
)  # fmt: skip
def test_text_that_a_script_writes_is_examined_at_its_own_line(tmp_path, opened, body, found):
    assert linted(tmp_path / "setup.sh", f"#!/bin/bash\n{opened}\n{body}EOF\necho done\n") == found


def test_text_without_an_end_is_part_of_the_script(tmp_path):
    assert list(heredocs.heredocs("a=$((1 <<EOF))\nexport B=1\n")) == []
    text = "echo $((1<<N))\nHIP_VISIBLE_DEVICES=all python a.py\n"
    assert linted(tmp_path / "a.sh", text) == {("visible-devices-no-list", 2)}


def test_script_without_other_texts_keeps_its_lines():
    script = "cat > a.json <<E\n{}\nE\nbash <<'E'\nx\nE\ny\n"
    assert heredocs.without_other_texts(script) == "cat > a.json <<E\n\nE\nbash <<'E'\nx\nE\ny\n"


def test_heredocs_that_never_end_are_passed_over_at_once():
    script = "".join(f"cat <<EOF{n}\n" for n in range(50_000)) + "cat <<-END\n\tx\n\tEND\n"
    assert [one.text.strip() for one in heredocs.heredocs(script)] == ["x"]
