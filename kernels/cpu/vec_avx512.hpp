// Sixteen f32 lanes in one AVX-512 register. Included only by the AVX-512 sources. vec_avx2.hpp has
// the same members, so the other sources of this folder are written once for both. Every operation
// rounds once per lane, as the reference level does.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

struct Mask {
  __mmask16 bits;
  static Mask first(std::int64_t count) {
    return {static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1u)};
  }
};

struct Vec {
  __m512 r;

  static Vec zero() { return {_mm512_setzero_ps()}; }
  static Vec all(float x) { return {_mm512_set1_ps(x)}; }
  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec load(const float* p, Mask m) { return {_mm512_maskz_loadu_ps(m.bits, p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, r); }
  void store(float* p, Mask m) const { _mm512_mask_storeu_ps(p, m.bits, r); }

  // Storage dtypes (kernels/panels.hpp): the first or the second number of each bfloat16 pair in a
  // line.
  static Vec first_bf16(const void* line) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_load_si512(line), 16))};
  }
  static Vec second_bf16(const void* line) {
    return {
        _mm512_castsi512_ps(_mm512_and_si512(_mm512_load_si512(line), _mm512_set1_epi32(-65536)))};
  }
  static void store_bf16(void* line, Vec first, Vec second) {
    _mm512_store_si512(
        line, _mm512_or_si512(_mm512_srli_epi32(first.rounded_bf16(), 16),
                              _mm512_and_si512(second.rounded_bf16(), _mm512_set1_epi32(-65536))));
  }
  static Vec from_int8(const void* p) {
    return {
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_load_si128(static_cast<const __m128i*>(p))))};
  }
  void store_int8(void* p) const {
    _mm_store_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(r)));
  }
  // The larger of two non-negative numbers, compared by bits so that a NaN is the largest.
  friend Vec larger_bits(Vec x, Vec y) {
    return {
        _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(x.r), _mm512_castps_si512(y.r)))};
  }
  Vec magnitude() const { return {_mm512_abs_ps(r)}; }

  friend Vec operator+(Vec x, Vec y) { return {_mm512_add_ps(x.r, y.r)}; }
  friend Vec operator-(Vec x, Vec y) { return {_mm512_sub_ps(x.r, y.r)}; }
  friend Vec operator*(Vec x, Vec y) { return {_mm512_mul_ps(x.r, y.r)}; }
  friend Vec operator/(Vec x, Vec y) { return {_mm512_div_ps(x.r, y.r)}; }
  friend Vec operator-(Vec x) { return {_mm512_xor_ps(x.r, _mm512_set1_ps(-0.0f))}; }
  friend Vec fma(Vec x, Vec y, Vec z) { return {_mm512_fmadd_ps(x.r, y.r, z.r)}; }
  friend Vec sqrt(Vec x) { return {_mm512_sqrt_ps(x.r)}; }
  // x > y ? x : y in each lane.
  friend Vec larger(Vec x, Vec y) { return {_mm512_max_ps(x.r, y.r)}; }

  friend Mask less(Vec x, Vec y) { return {_mm512_cmp_ps_mask(x.r, y.r, _CMP_LT_OQ)}; }
  friend Mask equal(Vec x, Vec y) { return {_mm512_cmp_ps_mask(x.r, y.r, _CMP_EQ_OQ)}; }
  friend Mask is_nan(Vec x) { return {_mm512_cmp_ps_mask(x.r, x.r, _CMP_UNORD_Q)}; }
  // The lanes of `yes` where the mask is set, those of `no` elsewhere.
  friend Vec select(Mask m, Vec yes, Vec no) { return {_mm512_mask_mov_ps(no.r, m.bits, yes.r)}; }
  friend bool all_finite(Vec x) {
    const __m512 limit = _mm512_set1_ps(3.402823466e+38f);
    return _mm512_cmp_ps_mask(_mm512_abs_ps(x.r), limit, _CMP_LE_OQ) == 0xffff;
  }
  // The bits of x plus those of y shifted left by 23: x * 2^(low bits of y).
  friend Vec add_exponent(Vec x, Vec y) {
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x.r),
                                                 _mm512_slli_epi32(_mm512_castps_si512(y.r), 23)))};
  }

  // The fixed reduction trees: lane l is joined with lane l+8, then l+4, l+2, l+1.
  float sum() const {
    const __m256 high = _mm512_extractf32x8_ps(r, 1);
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(r), high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  float max() const {
    const __m256 high = _mm512_extractf32x8_ps(r, 1);
    const __m256 eight = _mm256_max_ps(high, _mm512_castps512_ps256(r));
    const __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    const __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_shuffle_ps(two, two, 1), two));
  }

 private:
  // Rounds to bfloat16 in the upper halves: nearest, ties to even; a NaN becomes 0x7fc0. The lower
  // halves are undefined.
  __m512i rounded_bf16() const {
    const __m512i bits = _mm512_castps_si512(r);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmpgt_epu32_mask(
        _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)), _mm512_set1_epi32(0x7f800000));
    return _mm512_mask_mov_epi32(sum, nan, _mm512_set1_epi32(0x7fc00000));
  }
};

// Sixteen f64 lanes, for sums of squares.
struct WideSum {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();

  void add_squares(Vec x) {
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(x.r));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.r, 1));
    low = _mm512_add_pd(low, _mm512_mul_pd(a, a));
    high = _mm512_add_pd(high, _mm512_mul_pd(b, b));
  }
  double sum() const {
    const __m512d eight = _mm512_add_pd(low, high);
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL
