// Sixteen f32 lanes in two AVX2 registers. Included only by avx2.cpp. vec_avx512.hpp has the same
// members, so the other sources of this folder are written once for both. Every operation rounds
// once per lane, as the reference level does.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace troupe::kernels::avx2 {
namespace {

alignas(64) constexpr std::int32_t kMaskSource[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                      -1, -1, -1, -1, -1, 0,  0,  0,  0,  0,  0,
                                                      0,  0,  0,  0,  0,  0,  0,  0,  0,  0};

struct Mask {
  __m256 low, high;
  static Mask first(std::int64_t count) {
    const std::int32_t* from = kMaskSource + 16 - (count >= 16 ? 16 : count);
    return {_mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))),
            _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8)))};
  }
};

struct Vec {
  __m256 a, b;  // lanes 0..7 and 8..15

  static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vec load(const float* p, Mask m) {
    return {_mm256_maskload_ps(p, _mm256_castps_si256(m.low)),
            _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.high))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, a);
    _mm256_storeu_ps(p + 8, b);
  }
  void store(float* p, Mask m) const {
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.low), a);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.high), b);
  }

  // Storage dtypes (kernels/panels.hpp): the first or the second number of each bfloat16 pair in a
  // line.
  static Vec first_bf16(const void* line) {
    const auto* p = static_cast<const __m256i*>(line);
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_load_si256(p), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_load_si256(p + 1), 16))};
  }
  static Vec second_bf16(const void* line) {
    const auto* p = static_cast<const __m256i*>(line);
    const __m256i upper = _mm256_set1_epi32(-65536);
    return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_load_si256(p), upper)),
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_load_si256(p + 1), upper))};
  }
  static void store_bf16(void* line, Vec first, Vec second) {
    auto* p = static_cast<__m256i*>(line);
    _mm256_store_si256(p, pair_bf16(first.a, second.a));
    _mm256_store_si256(p + 1, pair_bf16(first.b, second.b));
  }
  static Vec from_int8(const void* p) {
    const auto* q = static_cast<const unsigned char*>(p);
    return {widened_int8(q), widened_int8(q + 8)};
  }
  void store_int8(void* p) const {
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b)), 0xd8);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(words, words), 0x08);
    _mm_store_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(bytes));
  }
  // The larger of two non-negative numbers, compared by bits so that a NaN is the largest.
  friend Vec larger_bits(Vec x, Vec y) {
    return {
        _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(x.a), _mm256_castps_si256(y.a))),
        _mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(x.b), _mm256_castps_si256(y.b)))};
  }
  Vec magnitude() const {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b)};
  }

  friend Vec operator+(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  friend Vec operator-(Vec x, Vec y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  friend Vec operator*(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  friend Vec operator/(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  friend Vec operator-(Vec x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(x.a, sign), _mm256_xor_ps(x.b, sign)};
  }
  friend Vec fma(Vec x, Vec y, Vec z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  friend Vec sqrt(Vec x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
  // x > y ? x : y in each lane.
  friend Vec larger(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }

  friend Mask less(Vec x, Vec y) {
    return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
  }
  friend Mask equal(Vec x, Vec y) {
    return {_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)};
  }
  friend Mask is_nan(Vec x) {
    return {_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)};
  }
  // The lanes of `yes` where the mask is set, those of `no` elsewhere.
  friend Vec select(Mask m, Vec yes, Vec no) {
    return {_mm256_blendv_ps(no.a, yes.a, m.low), _mm256_blendv_ps(no.b, yes.b, m.high)};
  }
  friend bool all_finite(Vec x) {
    const __m256 limit = _mm256_set1_ps(3.402823466e+38f);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 low = _mm256_cmp_ps(_mm256_andnot_ps(sign, x.a), limit, _CMP_LE_OQ);
    const __m256 high = _mm256_cmp_ps(_mm256_andnot_ps(sign, x.b), limit, _CMP_LE_OQ);
    return _mm256_movemask_ps(_mm256_and_ps(low, high)) == 0xff;
  }
  // The bits of x plus those of y shifted left by 23: x * 2^(low bits of y).
  friend Vec add_exponent(Vec x, Vec y) { return {add_exponent(x.a, y.a), add_exponent(x.b, y.b)}; }

  // The fixed reduction trees: lane l is joined with lane l+8, then l+4, l+2, l+1.
  float sum() const {
    const __m256 eight = _mm256_add_ps(a, b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  float max() const {
    const __m256 eight = _mm256_max_ps(b, a);
    const __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    const __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_shuffle_ps(two, two, 1), two));
  }

 private:
  static __m256 add_exponent(__m256 x, __m256 y) {
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_castps_si256(y), 23)));
  }
  static __m256 widened_int8(const unsigned char* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  // Rounds to bfloat16 in the upper halves: nearest, ties to even; a NaN becomes 0x7fc0. The lower
  // halves are undefined.
  static __m256i rounded_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)),
                                           _mm256_set1_epi32(0x7f800000));
    return _mm256_blendv_epi8(sum, _mm256_set1_epi32(0x7fc00000), nan);
  }
  static __m256i pair_bf16(__m256 first, __m256 second) {
    return _mm256_or_si256(_mm256_srli_epi32(rounded_bf16(first), 16),
                           _mm256_and_si256(rounded_bf16(second), _mm256_set1_epi32(-65536)));
  }
};

// Sixteen f64 lanes, for sums of squares.
struct WideSum {
  __m256d lanes[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                      _mm256_setzero_pd()};

  void add_squares(Vec x) {
    const __m128 quarter[4] = {_mm256_castps256_ps128(x.a), _mm256_extractf128_ps(x.a, 1),
                               _mm256_castps256_ps128(x.b), _mm256_extractf128_ps(x.b, 1)};
    for (int i = 0; i < 4; ++i) {
      const __m256d value = _mm256_cvtps_pd(quarter[i]);
      lanes[i] = _mm256_add_pd(lanes[i], _mm256_mul_pd(value, value));
    }
  }
  double sum() const {
    const __m256d four =
        _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[2]), _mm256_add_pd(lanes[1], lanes[3]));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace troupe::kernels::avx2
