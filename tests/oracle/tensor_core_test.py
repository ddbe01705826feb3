"""Compares kernels/tensor_core.hpp with MMA-Sim (PyPI: mmasim), its authors' model of tensor cores,
on 100,000 products of each kind of device, random and adversarial: cancellation, subnormals, gaps
of exponents around the cut, zeros of both signs, infinities and NaN."""
import os
import subprocess
from pathlib import Path

import mmasim.nv_ptx
import numpy as np
import pytest
import torch

DRIVER = Path(os.environ["TROUPE_BUILD_DIR"]) / "bin" / "tensor_core_driver"
DEPTH, PER_KIND = 16, 10_000


def bf16(sign, exponent, fraction):
    """Bits of bfloat16 numbers of these biased exponents."""
    return (sign << 15 | np.clip(exponent, 0, 255) << 7 | fraction).astype(np.uint16)


def numbers(rng, shape, low, high):
    return bf16(rng.integers(0, 2, shape), rng.integers(low, high + 1, shape), rng.integers(0, 128, shape))


def floats(rng, count, low, high):
    return (rng.integers(0, 2, count) << 31 | rng.integers(low, high + 1, count) << 23 |
            rng.integers(0, 1 << 23, count)).astype(np.uint32)


def some(rng, array, share, values):
    """Puts one of the values in the place of this share of the numbers."""
    where = rng.random(array.shape) < share
    array[where] = rng.choice(np.array(values, array.dtype), where.sum())
    return array


def alike(rng):
    shape = (PER_KIND, DEPTH)
    return (floats(rng, PER_KIND, 120, 134), numbers(rng, shape, 122, 131),
            numbers(rng, shape, 122, 131))


def anything(rng):
    shape = (PER_KIND, DEPTH)
    return floats(rng, PER_KIND, 0, 254), numbers(rng, shape, 0, 254), numbers(rng, shape, 0, 254)


def cancelling(rng):
    """Products come in pairs of opposite sign, but for one, which is far smaller."""
    c, a, b = alike(rng)
    a[:, 1::2], b[:, 1::2] = a[:, ::2] ^ 0x8000, b[:, ::2]
    a[:, -2], a[:, -1] = 0, numbers(rng, PER_KIND, 96, 112)
    return some(rng, c, 0.5, [0, 1 << 31]), a, b


def gaps(rng):
    """One product, or the accumulator, is 2^18 to 2^32 times larger than the rest."""
    c, a, b = alike(rng)
    a = bf16(a >> 15, 110 - rng.integers(0, 3, a.shape), a & 0x7f)
    large = rng.integers(0, DEPTH, PER_KIND)
    a[np.arange(PER_KIND), large] = numbers(rng, PER_KIND, 128, 142)
    c = np.where(rng.random(PER_KIND) < 0.5, c, floats(rng, PER_KIND, 128, 146)).astype(np.uint32)
    return c, a, b


def near_zero(rng):
    """Subnormal numbers, subnormal sums, products below every f32."""
    shape = (PER_KIND, DEPTH)
    return floats(rng, PER_KIND, 0, 3), numbers(rng, shape, 0, 66), numbers(rng, shape, 0, 66)


def sparse(rng):
    """Zeros of both signs among tiny numbers: their exponent counts."""
    c, a, b = near_zero(rng)
    return (some(rng, c, 0.7, [0, 1 << 31, 1, 0x80000001]), some(rng, a, 0.8, [0, 0x8000, 1, 0x8001]),
            some(rng, b, 0.3, [0, 0x8000]))


def below_zeros(rng):
    """Products of one sign below the exponent that a zero counts with: what is cut of them shows in the last bit."""
    shape = (PER_KIND, DEPTH)
    sign = rng.integers(0, 2, (PER_KIND, 1))
    a = bf16(sign, np.full(shape, 127 - 75), rng.integers(0, 128, shape))
    return np.zeros(PER_KIND, np.uint32), a, bf16(0, rng.integers(127 - 80, 127 - 74, shape), rng.integers(0, 128, shape))


def subnormal_factors(rng):
    shape = (PER_KIND, DEPTH)
    return floats(rng, PER_KIND, 0, 20), numbers(rng, shape, 0, 2), numbers(rng, shape, 110, 150)


def near_infinity(rng):
    shape = (PER_KIND, DEPTH)
    return (floats(rng, PER_KIND, 250, 254), numbers(rng, shape, 186, 191),
            numbers(rng, shape, 186, 191))


def special(rng):
    c, a, b = alike(rng)
    odd = [0x7f80, 0xff80, 0x7fc0, 0xffff, 0, 0x8000]
    return (some(rng, c, 0.1, [0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001]),
            some(rng, a, 0.02, odd), some(rng, b, 0.02, odd))


KINDS = [alike, anything, cancelling, gaps, near_zero, sparse, below_zeros, subnormal_factors, near_infinity, special]
DEVICES = {"ampere": ["Ampere", "Ada Lovelace"], "hopper": ["Hopper", "Blackwell", "RTX Blackwell"]}


def ours(device, c, a, b):
    rows = np.concatenate([c[:, None].view(np.uint8), a.view(np.uint8), b.view(np.uint8)], axis=1)
    done = subprocess.run([DRIVER, device], input=rows.tobytes(), capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint32)


def theirs(product, c, a, b):
    tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b)]
    start = torch.from_numpy(c.view(np.int32)).view(torch.float32)
    return product.dpa(*tensors, start).view(torch.int32).numpy().view(np.uint32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", DEVICES)
def test_products_have_the_bits_of_the_model(device, kind):
    c, a, b = kind(np.random.default_rng(KINDS.index(kind)))
    found = ours(device, c, a, b)
    for name in DEVICES[device]:
        product = mmasim.nv_ptx.MMA(name, "m16n8k16.f32.bf16.bf16.f32")
        expected = theirs(product, c, a, b)
        wrong = np.flatnonzero(found != expected)
        assert wrong.size == 0, (
            f"{wrong.size} of {len(c)} differ from {name}: first {wrong[0]}, "
            f"{found[wrong[0]]:08x} and not {expected[wrong[0]]:08x}")


def test_the_kinds_are_what_they_say():
    """Each kind tells the two rules, or rounding, from each other; else it shows nothing."""
    for kind in KINDS:
        c, a, b = kind(np.random.default_rng(KINDS.index(kind)))
        both = [ours(device, c, a, b) for device in DEVICES]
        if kind not in (near_zero, special):
            assert (both[0] != both[1]).sum() > 10, kind.__name__
    c, a, b = special(np.random.default_rng(KINDS.index(special)))
    found = ours("hopper", c, a, b)
    for bits in (0x7f800000, 0xff800000, 0x7fffffff):
        assert (found == bits).sum() > 10
    assert not ((found & 0x7fffffff > 0x7f800000) & (found != 0x7fffffff)).any()


def test_a_product_of_wgmma_is_that_of_mma():
    c, a, b = alike(np.random.default_rng(1))
    product = mmasim.nv_ptx.WGMMA("Hopper", "m64n8k16.f32.bf16.bf16")
    assert (ours("hopper", c, a, b) == theirs(product, c, a, b)).all()
