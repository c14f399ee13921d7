"""What is read of a manifest, whatever its form."""

import pytest

from rocmatrix.doctor.environment.files import manifests
from rocmatrix.runtime.errors import RocmatrixError

POD = "{containers: [{image: rocm/pytorch, resources: {limits: {nvidia.com/gpu: 1%s}}}]}"


def put(folder, text):
    (folder / "a.yaml").write_text(text)
    return folder / "a.yaml"


def test_manifest_yields_a_subject_for_each_container(tmp_path):
    text = "kind: Pod\nspec:\n  initContainers: [{image: a}]\n  containers: [{image: b, args: [x]}]\n"
    assert [subject.image for subject in manifests.of_manifests(put(tmp_path, text))] == ["b", "a"]


@pytest.mark.parametrize(("others", "corrected"), [("", True), (", amd.com/gpu: 1", False)])
def test_resource_of_nvidia_is_corrected_where_amds_is_not_there(tmp_path, others, corrected):
    notes = manifests.of_manifests(put(tmp_path, f"spec: {POD % others}\n"))[0].notes
    fixes = [note.fix for note in notes if note.rule == "k8s-nvidia-resource"]
    assert [fix is not None for fix in fixes] == [corrected]


@pytest.mark.parametrize(
    ("name", "image", "noted"),
    [("a.yaml", "me/app:1", True), ("a.yaml", "rocm/app:1", False), ("nvidia.yaml", "me/app:1", False)],
)
def test_pod_for_nvidia_alone_is_a_note(tmp_path, name, image, noted):
    path = tmp_path / name
    path.write_text(f"spec:\n  containers: [{{image: '{image}', resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]\n")
    (subject,) = manifests.of_manifests(path)
    assert [note.rule for note in subject.notes if note.rule == "nvidia-alone"] == (["nvidia-alone"] if noted else [])


def test_pod_under_an_alias_is_reported_once(tmp_path):
    subjects = manifests.of_manifests(put(tmp_path, f"a: &pod {POD % ''}\nb: *pod\nc: [*pod, &self [*self]]\n"))
    assert [subject.image for subject in subjects] == ["rocm/pytorch"]


def test_aliases_of_aliases_come_to_an_end(tmp_path):
    rows = [f"l{n}: &l{n} [{', '.join(10 * [f'*l{n - 1}'])}]" for n in range(1, 30)]
    path = put(tmp_path, "\n".join([f"l0: &l0 {POD % ''}", *rows, "? *l29", ": x", ""]))
    assert len(manifests.of_manifests(path)) == 1
    assert not manifests.repeated_keys(path)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", ["k8s-device-mounted"]),
        ("securityContext: {privileged: true}", []),
        ("resources: {limits: {cpu: 1, memory: 1Gi}}", ["k8s-device-mounted"]),
        ("resources: {limits: {amd.com/gpu: 1}}", []),
        ("resources: {limits: {'podman.io/device=/dev/kfd': 1}}", []),
        ("resources: {claims: [{name: gpu}]}", []),
    ],
)
def test_node_of_a_card_that_is_mounted_alone_is_an_error(tmp_path, more, found):
    text = (
        "spec:\n  containers:\n  - image: me/app:1\n    volumeMounts:\n    - {mountPath: /dev/kfd, name: kfd}\n    %s\n"
        "  volumes: [{name: kfd, hostPath: {path: /dev/kfd}}]\n"
    )
    path = put(tmp_path, text % more)
    (subject,) = manifests.of_manifests(path)
    notes = [(note.rule, note.where) for note in subject.notes if note.rule == "k8s-device-mounted"]
    assert notes == [(rule, f"{path}:5") for rule in found]


def test_file_that_is_nested_too_deeply_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="nested too deeply") as refused:
        manifests.documents(put(tmp_path, "[" * 3000 + "]" * 3000))
    assert refused.value.code == "RM311"


def test_key_that_is_given_again_is_counted_by_name(tmp_path):
    path = put(tmp_path, "a: {x: 1, x: 2, y: 1}\n---\nb: [{y: 1}, {y: 1, y: 2, y: 3}]\n")
    assert manifests.repeated_keys(path) == {"x": 1, "y": 2}
