"""Commands within pages and Makefiles, each at its own line of the file."""

import pytest

from rocmatrix.cli.commands.doctor import linted
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.shell import blocks
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

PAGE = """# Run it
Text with `docker run --gpus all`.
```bash
docker run -it --ipc=host --gpus all rocm/app:1
```
> ~~~console
> (venv) me@host:~$ export HSA_OVERRIDE_GFX_VERSION=gfx1030
> HSA_OVERRIDE_GFX_VERSION=gfx9
> ~~~
```
export HIP_VISIBLE_DEVICES="0, 1"
```
```yaml
services: {a: {image: "rocm/app:1", ipc: host, devices: [/dev/dri]}}
```
```python
HIP_VISIBLE_DEVICES=all
```
```dockerfile
FROM rocm/app:1
ENV HSA_ENABLE_SDMA=false
```
```bash
HSA_ENABLE_SDMA=off
"""
MAKEFILE = """export HIP_VISIBLE_DEVICES ?= 0;1
IMAGE = rocm/app:1
run: build
\t@docker run --ipc=host --device /dev/kfd $(IMAGE)
\techo "$$HOME"
"""


def found(path, text):
    path.write_text(text)
    findings = linted(recognise.subjects(path, shell={}), MATRIX)
    return {
        (each.rule, int(each.where.rsplit(":", 1)[1])) for each in findings if each.severity in ("error", "warning")
    }


def test_blocks_of_a_page_are_read_by_their_language_at_their_lines(tmp_path):
    """What a program printed, another language, and a block without an end are not."""
    assert found(tmp_path / "README.md", PAGE) == {
        ("gpus-option-of-nvidia", 4),
        ("override-malformed", 7),
        ("visible-devices-with-blanks", 11),
        ("kfd-not-given", 14),
        ("hsa-word-for-a-number", 21),
    }


SCRIPT = "#SBATCH --nodes=2\n#SBATCH --gres=gpu:1\nexport HSA_ENABLE_SDMA=false\n"


@pytest.mark.parametrize("first", ["#!/bin/bash\n", ""])
def test_script_for_sbatch_on_a_page_may_be_a_part_and_begins_below_line_1(tmp_path, first):
    page = f"# Cluster\n```bash\n{first}{SCRIPT}```\n"
    assert found(tmp_path / "page.md", page) == {("hsa-word-for-a-number", 6 if first else 5)}
    assert ("slurm-without-shebang", 1) in found(tmp_path / "job.sbatch", SCRIPT)


@pytest.mark.parametrize("text", ["no block\n", "```python\nexport HSA_ENABLE_SDMA=false\n```\n"])
def test_page_without_a_block_that_can_be_read_is_rm311(tmp_path, text):
    with pytest.raises(RocmatrixError, match="RM311"):
        found(tmp_path / "page.md", text)


@pytest.mark.parametrize("name", ["Makefile", "run.mk", "justfile"])
def test_recipes_and_exports_of_a_makefile_are_read_at_their_lines(tmp_path, name):
    assert found(tmp_path / name, MAKEFILE) == {("visible-devices-apart-by-other-than-commas", 1), ("dri-not-given", 4)}


def test_recipe_is_what_its_shell_sees():
    assert blocks.recipes('a:\n\t@-echo "$$HOME" $(IMAGE)\n') == '\necho "$HOME" ${IMAGE}\n'


def test_line_that_goes_on_after_a_prompt_belongs_to_it():
    (block,) = blocks.fenced("```\n$ docker run \\\n  --device /dev/dri a\nprinted\n```\n")
    assert (block.language, block.text) == ("bash", "\ndocker run \\\n  --device /dev/dri a\n\n")
