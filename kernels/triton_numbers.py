"""Number formats on the device by whole-number arithmetic, so that interpreter, GPU and reference agree in every bit.

The interpreter truncates float32 to bfloat16 and rounds to fp8 otherwise than torch; a GPU's own instructions differ by
generation. Nothing here converts to or from these formats but by their bits. Formats go by `CODES` of `numbers.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from hitproof.kernels.triton_words import load_unit, store_unit

__all__ = [
    "decode_bits",
    "encode_bits",
    "from_bf16_bits",
    "from_e4m3_bits",
    "from_e5m2_bits",
    "from_fp16_bits",
    "load_line",
    "load_value",
    "round_bf16",
    "store_line",
    "store_value",
    "to_bf16_bits",
    "to_e4m3_bits",
    "to_e5m2_bits",
    "to_fp16_bits",
]


@triton.jit
def to_bf16_bits(x):
    """uint32 below 2**16: float32 rounded to nearest, ties to even; NaN stays NaN."""
    bits = x.to(tl.uint32, bitcast=True)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Rounding would carry a NaN's last bits into its exponent.
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, (bits >> 16) | 0x40, rounded)


@triton.jit
def _rounded(x, MANTISSA: tl.constexpr, BIAS: tl.constexpr):
    """uint32: bits of |x| in a narrow format as if its exponent had no end, to nearest, ties to even."""
    bits = x.to(tl.uint32, bitcast=True) & 0x7FFFFFFF
    SHIFT: tl.constexpr = 23 - MANTISSA
    LEAST: tl.constexpr = 128 - BIAS
    exponent = bits >> 23
    normal = (bits + ((1 << (SHIFT - 1)) - 1) + ((bits >> SHIFT) & 1)) >> SHIFT
    normal -= (LEAST - 1) << MANTISSA
    # Below the least normal exponent fewer bits are left; 25 bits further none is.
    missing = tl.minimum(tl.maximum(LEAST - exponent.to(tl.int32), 0), 25 - SHIFT)
    by = (missing + SHIFT).to(tl.uint32)
    whole = (bits & 0x7FFFFF) | 0x800000
    half = (by * 0 + 1) << (by - 1)
    subnormal = (whole + (half - 1) + ((whole >> by) & 1)) >> by
    return tl.where(exponent >= LEAST, normal, subnormal)


@triton.jit
def to_fp16_bits(x):
    """uint32 below 2**16: as IEEE 754 rounds; too large is infinite, NaN stays NaN."""
    bits = x.to(tl.uint32, bitcast=True)
    sign = (bits >> 16) & 0x8000
    found = tl.minimum(_rounded(x, 10, 15), 0x7C00)
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7E00, found) | sign


@triton.jit
def to_e4m3_bits(x):
    """uint32 below 2**8: too large is 448, NaN stays NaN."""
    bits = x.to(tl.uint32, bitcast=True)
    sign = (bits >> 24) & 0x80
    found = tl.minimum(_rounded(x, 3, 7), 0x7E)
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7F, found) | sign


@triton.jit
def to_e5m2_bits(x):
    """uint32 below 2**8: too large is 57,344, NaN stays NaN."""
    bits = x.to(tl.uint32, bitcast=True)
    sign = (bits >> 24) & 0x80
    found = tl.minimum(_rounded(x, 2, 15), 0x7B)
    return tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7F, found) | sign


@triton.jit
def from_bf16_bits(bits):
    """float32, exact."""
    return (bits.to(tl.uint32) << 16).to(tl.float32, bitcast=True)


@triton.jit
def from_fp16_bits(bits):
    """float32, exact."""
    return bits.to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def from_e4m3_bits(bits):
    """float32, exact; 0x7f and 0xff are NaN, and nothing is infinite."""
    word = bits.to(tl.uint32)
    sign = (word & 0x80) << 24
    low = word & 0x7F
    normal = (low << 20) + (120 << 23)
    # 2**-9 is the smallest step; its multiples up to 7 are exact.
    small = ((low & 7).to(tl.int32).to(tl.float32) * 0.001953125).to(tl.uint32, bitcast=True)
    found = tl.where(low < 8, small, normal)
    return (tl.where(low == 0x7F, 0x7FC00000, found) | sign).to(tl.float32, bitcast=True)


@triton.jit
def from_e5m2_bits(bits):
    """float32, exact: the upper byte of a half-precision number."""
    return from_fp16_bits(bits.to(tl.uint32) << 8)


@triton.jit
def decode_bits(bits, CODE: tl.constexpr):
    """float32 of a format's bits, exact."""
    if CODE == 0:
        found = bits.to(tl.uint32).to(tl.float32, bitcast=True)
    elif CODE == 1:
        found = from_bf16_bits(bits)
    elif CODE == 2:
        found = from_fp16_bits(bits)
    elif CODE == 3:
        found = from_e4m3_bits(bits)
    else:
        found = from_e5m2_bits(bits)
    return found


@triton.jit
def encode_bits(x, CODE: tl.constexpr):
    """uint32: float32 rounded to a format, to nearest, ties to even."""
    if CODE == 0:
        found = x.to(tl.uint32, bitcast=True)
    elif CODE == 1:
        found = to_bf16_bits(x)
    elif CODE == 2:
        found = to_fp16_bits(x)
    elif CODE == 3:
        found = to_e4m3_bits(x)
    else:
        found = to_e5m2_bits(x)
    return found


@triton.jit
def round_bf16(x):
    """float32 that bfloat16 can hold: x rounded to it and back."""
    return from_bf16_bits(to_bf16_bits(x))


@triton.jit
def load_value(place, mask, CODE: tl.constexpr, UNIT: tl.constexpr):
    """float32: values at `place`, pointers to uint8 that are multiples of `UNIT`; 0 where masked."""
    BYTES: tl.constexpr = 4 if CODE == 0 else (2 if CODE < 3 else 1)
    STEP: tl.constexpr = UNIT if UNIT < BYTES else BYTES
    bits = load_unit(place, mask, STEP)
    for part in tl.static_range(1, BYTES // STEP):
        bits |= load_unit(place + part * STEP, mask, STEP) << (8 * part * STEP)
    return decode_bits(bits, CODE)


@triton.jit
def store_value(place, x, mask, CODE: tl.constexpr, UNIT: tl.constexpr):
    """Round float32 to a format and write it to `place`, as in `load_value`."""
    BYTES: tl.constexpr = 4 if CODE == 0 else (2 if CODE < 3 else 1)
    STEP: tl.constexpr = UNIT if UNIT < BYTES else BYTES
    bits = encode_bits(x, CODE).to(tl.uint64)
    for part in tl.static_range(BYTES // STEP):
        store_unit(place + part * STEP, bits >> (8 * part * STEP), mask, STEP)


@triton.jit
def load_line(lines, value, mask, CODE: tl.constexpr):
    """float32: values that lie one after the other from `lines`, pointers to uint8 that a whole value divides.

    The compiler sees that neighbours lie side by side, which it does not where bytes are counted.
    """
    if CODE == 0:
        bits = tl.load(lines.to(tl.pointer_type(tl.uint32)) + value, mask=mask, other=0)
    elif CODE < 3:
        bits = tl.load(lines.to(tl.pointer_type(tl.uint16)) + value, mask=mask, other=0).to(tl.uint32)
    else:
        bits = tl.load(lines + value, mask=mask, other=0).to(tl.uint32)
    return decode_bits(bits, CODE)


@triton.jit
def store_line(lines, value, x, mask, CODE: tl.constexpr):
    """Round float32 to a format and write it one after the other; arguments as in `load_line`."""
    bits = encode_bits(x, CODE)
    if CODE == 0:
        tl.store(lines.to(tl.pointer_type(tl.uint32)) + value, bits, mask=mask)
    elif CODE < 3:
        tl.store(lines.to(tl.pointer_type(tl.uint16)) + value, bits.to(tl.uint16), mask=mask)
    else:
        tl.store(lines + value, bits.to(tl.uint8), mask=mask)
