from __future__ import annotations

import pytest
import torch

from training.algos.merge import MergeError, merge


def model(seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return {
        "weight": torch.randn(3, 4, generator=generator, dtype=torch.float64).to(dtype),
        "bias": torch.randn(3, generator=generator, dtype=torch.float64).to(dtype),
        "places": torch.arange(3),
    }


def test_the_whole_weight_on_one_gives_it_back():
    models = [model(1), model(2)]
    for name, tensor in merge(models, [0.0, 1.0]):
        assert torch.equal(tensor, models[1][name])


def test_equal_models_stay_what_they_are_and_order_doesnt_matter():
    one, two, three = model(1), model(2), model(3)
    for name, tensor in merge([one] * 3, [0.2, 0.3, 0.5]):
        torch.testing.assert_close(tensor, one[name], rtol=0, atol=1e-15)
    there = dict(merge([one, two, three], [0.2, 0.3, 0.5]))
    back = dict(merge([three, two, one], [0.5, 0.3, 0.2]))
    for name, tensor in there.items():
        torch.testing.assert_close(tensor, back[name], rtol=0, atol=1e-15)


def test_bf16_is_rounded_once():
    """Eight models: sums in bf16 would lose bits at each of them."""
    models = [model(seed, torch.bfloat16) for seed in range(8)]
    weights = [0.125] * 8
    exact = sum(m["weight"].double() * w for m, w in zip(models, weights, strict=True))
    merged = dict(merge(models, weights))["weight"]
    assert merged.dtype == torch.bfloat16
    assert torch.equal(merged, exact.bfloat16())
    summed = torch.zeros(3, 4, dtype=torch.bfloat16)
    for other in models:
        summed += 0.125 * other["weight"]
    assert not torch.equal(merged, summed)


def test_one_tensor_at_a_time():
    """A mapping that loads is asked for each tensor when its turn comes, and once."""
    asked = []

    class Loading(dict):
        def __getitem__(self, name):
            asked.append(name)
            return super().__getitem__(name)

    merging = merge([Loading(model(1)), Loading(model(2))], [0.5, 0.5])
    assert asked == []
    assert next(merging)[0] == "weight"
    assert asked == ["weight", "weight"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5], "1 weights for 2 models"),
        ([0.5, 0.6], "add up to 1.1"),
        ([1.5, -0.5], "weight 2 is -0.5"),
        ([float("nan"), 1.0], "weight 1 is nan"),
    ],
)
def test_weights_that_are_no_mixture(weights, message):
    with pytest.raises(MergeError, match=message):
        merge([model(1), model(2)], weights)


def test_no_model_at_all():
    with pytest.raises(MergeError, match="0 weights for 0 models"):
        merge([], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("bias"), "model 2 has no bias"),
        (lambda m: m.update(extra=torch.ones(1)), "model 1 has no extra of model 2"),
        (lambda m: m.update(bias=torch.ones(4)), r"bias has shape \(4,\) in model 2, \(3,\) in model 1"),
        (lambda m: m.update(places=torch.zeros(3).long()), "places holds other whole numbers"),
    ],
)  # fmt: skip
def test_models_that_dont_fit_are_named(change, message):
    other = model(2)
    change(other)
    with pytest.raises(MergeError, match=message):
        dict(merge([model(1), other], [0.5, 0.5]))
