"""What is read of a manifest."""

from rocmatrix.doctor.environment.files import manifests


def test_manifest_yields_a_subject_for_each_container(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("kind: Pod\nspec:\n  initContainers: [{image: a}]\n  containers: [{image: b, args: [x]}]\n")
    assert [subject.image for subject in manifests.of_manifests(path)] == ["b", "a"]
