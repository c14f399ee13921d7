# ruff: noqa: E501 (messages stand as programs print them)
"""Exceptions whose message states a limit: the class of it comes first, and of its causes the one that the words hint at.

Forms are those of vLLM, SGLang, DeepSpeed, flash-attention and others; names and numbers are made up.
"""

import pytest

from benchmarks.diagnose_cases import diagnosed, listed
from tests.unit.rocmatrix.diagnosis.known import SIGNATURES

KNOWN = tuple(SIGNATURES)

STATED = (
    ("ImportError: Please install foo-quant via `pip install foo-quant` to use it.", "package-asked-for", "foo-quant"),
    ("ImportError: FooKV is required. Install it with: pip install -U foo-kv (latest version)", "package-asked-for", "too old"),
    ("AssertionError: 27 heads are not divisible by world size 8", "sizes-do-not-divide", "number of cards"),
    ("ValueError: input_size_per_partition = 1368 is not divisible by block_k = 128", "sizes-do-not-divide", "quantization"),
    ("ValueError: train_batch_size 100 is not divisible by micro_batch times 3", "sizes-do-not-divide", "micro batch"),
    ("RuntimeError: foo page size must be divisible by 128", "sizes-do-not-divide", "page"),
    ("ValueError: FooCache is not compatible with --bar-backend baz", "options-exclude-each-other", "without one of them"),
    ("ValueError: --foo requires --bar to be set", "options-exclude-each-other", "needs another"),
    ("ValueError: Unknown cache layout FOO. Valid layouts: BAR, BAZ", "value-not-among-choices", "release"),
    ("ValueError: Please use fooao version >= 9.1 to load the checkpoint", "version-demanded", "too old"),
    ("RuntimeError: fooAsync is missing, ROCm 9.9 or newer is required", "version-demanded", "ROCm"),
    ("RuntimeError: foo_lens must have dtype int32", "kernel-data-type-refused", "64-bit"),
    ("ValueError: Unsupported dtype torch.uint8 of the KV cache for foo_gemm", "kernel-data-type-refused", "quantised"),
    ("ValueError: max_num_foo (256) exceeds the cache blocks (120)", "limit-exceeded", "setting of the server"),
    ("ValueError: the prompt of 9000 tokens is longer than the context of 4096", "limit-exceeded", "context"),
    ("RuntimeError: foo must have shape (batch, heads, dim)", "tensor-shape-refused", "versions"),
    ("AssertionError: Aiter FooAttention only supports one sliding window", "aiter-form-refused", "another back end"),
    ("AssertionError: Aiter Foo supports num_head of 4 or 8, got 5. Try adjusting tensor_parallel_size", "aiter-form-refused", "tensor parallel"),
    ("ValueError: environment variable FOO_RANK expected, but not set", "setting-not-given", "launcher"),
    ("ValueError: foo_layout must be specified for the cache", "setting-not-given", "renamed"),
    ("AssertionError: the foo buffer is not initialized", "called-before-it-is-ready", "earlier step"),
    ("KeyError: 'layers.3.foo.experts.w2_weight_scale'", "weights-names-unknown", "quantised"),
    ("RuntimeError: fooGemm() has no workspace\nrocBLAS internal error: hipMallocAsync() failed, no workspace memory", "rocblas-internal-message", "memory of the card"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "expected", "word"), STATED, ids=[f"{row[1]}-{row[2]}" for row in STATED])
def test_exception_that_states_a_limit_is_answered_by_its_class_and_the_cause_it_hints_at(line, expected, word):
    found = diagnosed(f'  File "/srv/foo/bar.py", line 7, in baz\n    check(x)\n{line}\n', KNOWN)
    assert found.best is not None
    assert found.best.signature.id == expected
    text, certain = next(listed(found, found.best))
    assert word in text
    assert not certain


def test_stated_limit_below_the_prefix_of_an_engine_is_found():
    line = (
        "(Worker_TP0 pid=71) ERROR 11-29 10:11:12 [multiproc_executor.py:1050] ValueError: 27 is not divisible by 8\n"
    )
    found = diagnosed(line, KNOWN)
    assert found.best is not None
    assert found.best.signature.id == "sizes-do-not-divide"


@pytest.mark.parametrize(
    "line",
    [
        "INFO 11-29 10:11:12 sizes that are not divisible by 8 are padded\n",
        "WARNING: the prompt is longer than the context and is cut\n",
        "UserWarning: flash attention requires version >= 2, using sdpa\n",
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'\n",
    ],
)
def test_words_of_a_limit_outside_of_such_an_exception_are_not_taken_for_one(line):
    found = diagnosed(line, KNOWN)
    limits = {expected for _, expected, _ in STATED}
    assert limits.isdisjoint(match.signature.id for match in found.ranked.failures)


def test_word_of_a_limit_far_below_an_exception_is_not_of_its_message():
    found = diagnosed(f"ValueError: foo\n{'bar ' * 60}\nthe window is not divisible by 8\n", KNOWN)
    assert found.best is not None
    assert found.best.signature.id == "python-value-refused"


def test_cause_that_is_known_in_detail_comes_before_the_class_of_its_message():
    line = "RuntimeError: The size of tensor a (7) must match the size of tensor b (9) at non-singleton dimension 1\n"
    found = diagnosed(line, KNOWN)
    assert found.best is not None
    assert found.best.signature.id == "shapes-do-not-fit"


def test_hint_of_another_exception_does_not_order_the_causes():
    other = f"RuntimeError: the tensor parallel group of world size 8 is gone\n{'foo' * 60}\n"
    found = diagnosed(f"{other}ValueError: window 27 is not divisible by 8\n", KNOWN)
    assert found.best is not None
    text, _ = next(listed(found, found.best))
    assert "window length" in text
