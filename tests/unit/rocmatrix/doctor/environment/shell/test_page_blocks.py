"""Code blocks that no fence marks, each at its own line of the page."""

import pytest

from rocmatrix.doctor.environment.shell import page_blocks


def of(found):
    return [(one.language, one.text.strip("\n"), len(one.text) - len(one.text.lstrip("\n"))) for one in found]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("a\n\n    pip install torch\n\n    cd a\n\nb\n", [("bash", "pip install torch\n\ncd a", 2)]),
        ("a\n\n\tFROM rocm/app:1\n\tRUN b\n", [("dockerfile", "FROM rocm/app:1\nRUN b", 2)]),
        ("a\n    pip install torch\n", []),  # it goes on a paragraph
        ("1. a\n\n    Install torch with pip install torch.\n", []),
        ("a\n\n    services:\n      b: 1\n", [("yaml", "services:\n  b: 1", 2)]),
        ("```text\n\n    pip install a\n```\n\n    pip install b\n", [("bash", "pip install b", 5)]),
        ("    git is a program\n", []),
        ("~~~~\n```\n\n    pip install a\n~~~~\n", []),
    ],
)
def test_indented_block_of_markdown_is_code_where_its_first_line_is_a_command(page, found):
    assert of(page_blocks.indented(page)) == found


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (".. code-block:: bash\n\n   cd a\n\nb\n", [("bash", "cd a", 2)]),
        (".. prompt:: bash $\n   :x: y\n\n   $ cd a\n   printed\n", [("bash", "cd a", 3)]),
        ("a::\n\n  pip install b\nc\n", [("bash", "pip install b", 2)]),
        ("a::\n\n  a = b\n", []),
        (".. note::\n\n  pip install b\n", []),
        ("- .. code:: docker\n\n     FROM a\n", []),  # behind a mark of a list it is no directive of its own line
        (".. code-block::\n\n   docker run a\n", [("bash", "docker run a", 2)]),
        ("a::\n", []),
        ("  a::\n\n      sudo docker run b \\\n        c\n", [("bash", "sudo docker run b \\\n  c", 2)]),
    ],
)
def test_block_of_restructuredtext_is_read_by_its_directive_or_its_first_line(page, found):
    assert of(page_blocks.of_rst(page)) == found


def test_notebook_hands_lines_with_a_mark_and_cells_of_bash_to_a_shell():
    text = '[\n "!pip install a\\n",\n "x = 1\\n",\n "%env A=b c"\n],[\n "%%bash\\n",\n "cd b"\n],[\n "cd c"\n]\n'
    assert page_blocks.of_notebook(text).splitlines() == [
        "", "pip install a", "", "export A='b c'", "", "", "cd b", "", "", "",
    ]  # fmt: skip
