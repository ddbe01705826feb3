// What a tensor core computes of bfloat16 operands, in integers: the bits of PTX's mma.m16n8k16
// (and of wgmma and tcgen05 with k = 16), with which the emulated device and the tests multiply.
//
// A step adds `products` products and the accumulator at once. Each is cut, towards zero, at
// `fraction` bits below the largest exponent among them, the sum is exact, and it is cut to f32
// towards zero. The exponent of a product is the sum of its factors' exponents, even when its
// significand is 2 or more; subnormals are kept, with the exponent of the least normal number; a
// zero counts with `zero_exponent`. A sum of zero is +0, and every NaN is 0x7fffffff.
//
// Source: MMA-Sim (arXiv 2511.10909), whose authors compared it with devices of each architecture.
// tests/oracle/tensor_core_test.py compares this file with their package.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace troupe::kernels {

struct TensorCore {
  int products, fraction, zero_exponent;
};
inline constexpr TensorCore kAmpereTensorCore{8, 24, -132};   // Ada, too
inline constexpr TensorCore kHopperTensorCore{16, 25, -133};  // Blackwell, too

// Of a device of this compute capability (major number, 8 or more).
constexpr const TensorCore& tensor_core_of(int major) {
  return major < 9 ? kAmpereTensorCore : kHopperTensorCore;
}

inline constexpr int kTensorDepth = 16;  // products of an mma

// 16 bfloat16 numbers, zeros at first, as factors of products: significand * 2^(exponent - 7).
// Infinity has the exponent 128 and the significand 1 or -1, NaN the significand 0.
struct TensorFactors {
  std::array<std::int32_t, kTensorDepth> significand{}, exponent{};

  constexpr TensorFactors() = default;
  constexpr explicit TensorFactors(const std::array<std::uint16_t, kTensorDepth>& numbers) {
    std::int32_t specials = 0;
    for (std::size_t i = 0; i < kTensorDepth; ++i) {
      const std::int32_t bits = numbers[i], biased = bits >> 7 & 0xff;
      const std::int32_t size = (bits & 0x7f) + (biased > 0 ? 0x80 : 0);
      const std::int32_t negative = -(bits >> 15);  // all ones, or 0
      significand[i] = (size ^ negative) - negative;
      exponent[i] = biased - (biased > 0 ? 127 : 126);
      specials += biased == 0xff ? 1 : 0;
    }
    for (std::size_t i = 0; specials > 0 && i < kTensorDepth; ++i) {
      if (exponent[i] < 128) continue;
      const std::int32_t size = (numbers[i] & 0x7f) == 0 ? 1 : 0;
      significand[i] = numbers[i] >= 0x8000 ? -size : size;
    }
  }
};

namespace tensor_core_detail {

constexpr std::uint32_t kInfinity = 0x7f800000u, kNan = 0x7fffffffu, kSign = 0x80000000u;

// sum * 2^exponent as f32, cut towards zero.
constexpr std::uint32_t cut(std::int64_t sum, int exponent) {
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? kSign : 0;
  const auto size = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int top = static_cast<int>(std::bit_width(size)) - 1;
  if (top + exponent > 127) return sign | kInfinity;
  const int least = top + exponent < -126 ? -149 : top + exponent - 23;  // exponent of the last bit
  const int shift = exponent - least;
  const auto bits = static_cast<std::uint32_t>(shift < 0 ? size >> -shift : size << shift);
  if (bits == 0) return 0;
  if (top + exponent < -126) return sign | bits;
  return sign | (static_cast<std::uint32_t>(top + exponent + 127) << 23 | (bits & 0x7fffffu));
}

// The sum of operands among which are infinities or NaN.
constexpr std::uint32_t special(
    std::uint32_t c, const TensorFactors& a, const TensorFactors& b, int first, int products) {
  bool plus = false, minus = false, nan = (c & ~kSign) > kInfinity;
  if ((c & ~kSign) == kInfinity) ((c & kSign) != 0 ? minus : plus) = true;
  for (int k = first; k < first + products; ++k) {
    const auto i = static_cast<std::size_t>(k);
    if (a.exponent[i] < 128 && b.exponent[i] < 128) continue;
    const std::int32_t product = a.significand[i] * b.significand[i];
    (product == 0 ? nan : product < 0 ? minus : plus) = true;  // NaN, or infinity times zero: 0
  }
  if (nan || (plus && minus)) return kNan;
  return (plus ? 0 : kSign) | kInfinity;
}

// Loops of a constant length without branches, which compilers turn into vector instructions.
template <TensorCore core>
constexpr std::uint32_t step(std::uint32_t c,
                             const TensorFactors& a,
                             const TensorFactors& b,
                             int first) {
  constexpr int kProducts = core.products;
  const std::int32_t* const a_size = &a.significand[static_cast<std::size_t>(first)];
  const std::int32_t* const b_size = &b.significand[static_cast<std::size_t>(first)];
  const std::int32_t* const a_exponent = &a.exponent[static_cast<std::size_t>(first)];
  const std::int32_t* const b_exponent = &b.exponent[static_cast<std::size_t>(first)];
  std::int32_t products[kProducts] = {}, exponents[kProducts] = {};
  std::int32_t largest_of_any = 0;
  for (int k = 0; k < kProducts; ++k) {
    const std::int32_t larger = a_exponent[k] > b_exponent[k] ? a_exponent[k] : b_exponent[k];
    largest_of_any = larger > largest_of_any ? larger : largest_of_any;
  }
  const int biased = static_cast<int>(c >> 23 & 0xffu);
  if (biased == 0xff || largest_of_any == 128) return special(c, a, b, first, kProducts);
  const std::int64_t fraction = c & 0x7fffffu;
  const std::int64_t start = biased == 0 ? fraction : fraction | 0x800000;  // * 2^(exponent - 23)
  const int start_exponent = start == 0 ? core.zero_exponent : biased == 0 ? -126 : biased - 127;
  std::int32_t largest = start_exponent;
  for (int k = 0; k < kProducts; ++k) {
    products[k] = a_size[k] * b_size[k];  // * 2^(exponent - 14)
    exponents[k] = products[k] == 0 ? core.zero_exponent : a_exponent[k] + b_exponent[k];
    largest = exponents[k] > largest ? exponents[k] : largest;
  }
  std::int32_t sum = 0;  // below 2^31: 16 products below 2^16, 11 places further left
  for (int k = 0; k < kProducts; ++k) {
    const std::int32_t apart = largest - exponents[k], shift = apart < 31 ? apart : 31;
    const std::int32_t size = products[k] < 0 ? -products[k] : products[k];
    const std::int32_t part = (size << (core.fraction - 14)) >> shift;
    sum += products[k] < 0 ? -part : part;
  }
  const int apart = largest - start_exponent;
  const std::int64_t begun = apart > 62 ? 0 : (start << (core.fraction - 23)) >> apart;
  return cut((c & kSign) != 0 ? sum - begun : sum + begun, largest - core.fraction);
}

}  // namespace tensor_core_detail

// The f32 that an mma makes of the accumulator `c` and 16 products, in bits.
constexpr std::uint32_t tensor_core_sum(const TensorCore& core,
                                        std::uint32_t c,
                                        const TensorFactors& a,
                                        const TensorFactors& b) {
  using tensor_core_detail::step;
  if (core.products == kTensorDepth) return step<kHopperTensorCore>(c, a, b, 0);
  c = step<kAmpereTensorCore>(c, a, b, 0);
  return step<kAmpereTensorCore>(c, a, b, kAmpereTensorCore.products);
}

}  // namespace troupe::kernels
