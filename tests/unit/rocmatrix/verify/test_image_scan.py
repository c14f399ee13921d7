"""What a scan of an image's files finds."""

from rocmatrix.verify import image_scan
from rocmatrix.verify.devicecode.filetree import on_disk
from tests.fixtures import cells
from tests.fixtures.trees import write


def test_package_is_known_by_its_metadata_not_by_its_folder(tmp_path):
    about = b"Metadata-Version: 2.1\nName: Some.Package\nVersion: 1.2+cpu\n\nText\nVersion: 9\n"
    write(tmp_path, {"opt/venv/lib/python3.12/site-packages/other-9.9.dist-info/METADATA": about})
    assert image_scan.read(on_disk(tmp_path), cells.MATRIX.kernels).packages == {"some-package": "1.2+cpu"}
