"""Repeated operations give what FakeTensorMode gives: sizes, strides, and which storages are shared."""

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._pytree import tree_leaves

from trainer.run.memory_plan.tensors.repeated import RepeatedOperations

aten = torch.ops.aten
MODE = FakeTensorMode()
OPERATIONS = {
    "new": lambda call, a, b: call(aten.mul.Tensor, (a, b), {}),
    "new of another dtype": lambda call, a, b: call(aten._to_copy.default, (a,), {"dtype": torch.bfloat16}),
    "product": lambda call, a, b: call(aten.mm.default, (a, b.t()), {}),
    "view": lambda call, a, b: call(aten.view.default, (a, [2, 16]), {}),
    "view with an offset": lambda call, a, b: call(aten.slice.Tensor, (b, 0, 1, 3), {}),
    "expanded view": lambda call, a, b: call(aten.expand.default, (a[:1], [5, 8]), {}),
    "several views": lambda call, a, b: call(aten.split.Tensor, (a, 2), {}),
    "several new": lambda call, a, b: call(aten.var_mean.correction, (a, [1]), {"correction": 0}),
    "new of lists": lambda call, a, b: call(aten._foreach_add.List, ([a, b], [b, a]), {}),
    "in place": lambda call, a, b: call(aten.add_.Tensor, (a, b), {}),
    "in place on lists": lambda call, a, b: call(aten._foreach_mul_.Scalar, ([a, b], 2.0), {}),
    "out": lambda call, a, b: call(aten.mul.out, (a, b), {"out": b}),
    "out of its own": lambda call, a, b: call(aten.mul.out, (a, b), {"out": torch.empty(4, 8)}),
    "without tensors": lambda call, a, b: call(aten.empty.memory_format, ([3, 5],), {"dtype": torch.int8}),
    "a number": lambda call, a, b: call(aten.full.default, ([], True), {}),
    "another number": lambda call, a, b: call(aten.full.default, ([], 1), {}),
    "a number of floats": lambda call, a, b: call(aten.full.default, ([], 1.0), {}),
}


def tensors():
    with MODE:
        return torch.empty(4, 8), torch.empty(4, 8)


def description(outputs, given):
    """Each tensor's sizes, and the first of the others that has its storage."""
    leaves = [each for each in tree_leaves(outputs) if each is not None]
    storages = [each.untyped_storage()._cdata for each in (*given, *leaves)]

    def of(each):
        sizes = each.shape, each.stride(), each.dtype, each.storage_offset(), each.device
        storage = each.untyped_storage()
        return *sizes, storage.nbytes(), storages.index(storage._cdata), [each is other for other in given]

    return [of(each) for each in leaves]


@pytest.mark.parametrize("seen", [False, True], ids=["alone", "after all others"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_repeated_operation_has_the_results_of_the_mode(name, seen):
    call = RepeatedOperations(MODE)
    with MODE:
        for each in OPERATIONS.values() if seen else [OPERATIONS[name]]:
            each(call, *tensors())
        known, given = len(call._known), tensors()
        found = description(OPERATIONS[name](call, *given), given)
        assert len(call._known) == known
        plain = tensors()
        assert found == description(OPERATIONS[name](lambda func, args, kwargs: func(*args, **kwargs), *plain), plain)


def test_operation_that_changes_sizes_is_called_each_time():
    call = RepeatedOperations(MODE)
    for _ in range(2):
        with MODE:
            turned = call(aten.t_.default, (torch.empty(4, 8),), {})
        assert turned.shape == (8, 4)
    assert set(call._known.values()) == {None}


def test_storage_that_is_larger_than_its_tensor_is_not_repeated():
    """A slice of what an operation made within itself: its storage stays."""
    call = RepeatedOperations(MODE)

    def sliced(tensor):
        return torch.cat([tensor, tensor])[:4]

    sliced.name, sliced.tags = (lambda: "aten::made_up"), ()
    with MODE:
        for _ in range(2):
            assert call(sliced, tensors()[:1], {}).untyped_storage().nbytes() == 256


def test_device_of_a_tensor_without_data_is_the_hosts():
    assert RepeatedOperations(MODE)(torch.ops.prim.device.default, tensors()[:1], {}) == torch.device("cpu")


def test_decision_by_a_value_is_taken_to_be_true_and_a_number_is_unknown():
    call, of_value = RepeatedOperations(MODE), aten._local_scalar_dense.default
    with MODE:
        assert call(of_value, (torch.rand(1) > 0.5,), {}) is True
        assert call(of_value, (torch.tensor(False),), {}) is False  # its value is known
        with pytest.raises(DataDependentOutputException):
            call(of_value, (torch.rand(1),), {})
