// What the kernel tests share: the levels of this processor, memory with poisoned surroundings, and
// comparison of bits. Every NaN counts as the same value: its payload is not part of the
// arithmetic.
#pragma once

#include "kernels/ops.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace troupe::kernels::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline const Ops& reference() {
  return ops_for(Isa::kReference);
}

// `count` floats, 64-byte aligned, between two stretches of NaN; check() tells that these still
// stand.
class Guarded {
 public:
  explicit Guarded(std::int64_t count, float value = 0.0f)
      : storage_(static_cast<std::size_t>(count) + 2 * kGuard + 16, kNan), count_(count) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    begin_ = storage_.data() + (64 - address % 64) % 64 / sizeof(float) + kGuard;
    for (std::int64_t i = 0; i < count; ++i)
      begin_[i] = value;
  }
  Guarded(const Guarded& other) : Guarded(other.count_) {
    for (std::int64_t i = 0; i < count_; ++i)
      begin_[i] = other.begin_[i];
  }
  Guarded& operator=(const Guarded& other) {
    for (std::int64_t i = 0; i < count_; ++i)
      begin_[i] = other.begin_[i];
    return *this;
  }

  static Guarded random(std::int64_t count, std::uint32_t seed, float deviation = 1.0f) {
    Guarded out(count);
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(0.0f, deviation);
    for (std::int64_t i = 0; i < count; ++i)
      out.begin_[i] = normal(engine);
    return out;
  }

  float* data() { return begin_; }
  const float* data() const { return begin_; }
  std::int64_t size() const { return count_; }
  float& operator[](std::int64_t i) { return begin_[i]; }
  float operator[](std::int64_t i) const { return begin_[i]; }

  bool guards_intact() const {
    for (const float* p = storage_.data(); p < begin_; ++p)
      if (*p == *p) return false;
    for (const float* p = begin_ + count_; p < storage_.data() + storage_.size(); ++p)
      if (*p == *p) return false;
    return true;
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  std::vector<float> storage_;
  float* begin_ = nullptr;
  std::int64_t count_ = 0;
};

inline bool same_bits(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

inline ::testing::AssertionResult same_bits(const Guarded& expected, const Guarded& actual) {
  if (!expected.guards_intact() || !actual.guards_intact())
    return ::testing::AssertionFailure() << "wrote outside its memory";
  for (std::int64_t i = 0; i < expected.size(); ++i)
    if (!same_bits(expected[i], actual[i]))
      return ::testing::AssertionFailure() << "element " << i << " of " << expected.size() << ": "
                                           << std::hexfloat << expected[i] << " and " << actual[i];
  return ::testing::AssertionSuccess();
}

// A test over the vector levels; a level that the processor lacks is skipped.
class VectorLevel : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    flush_denormals();
    if (!isa_available(GetParam())) GTEST_SKIP() << "this processor lacks the level";
  }
  const Ops& level() const { return ops_for(GetParam()); }
};

inline std::string level_name(const ::testing::TestParamInfo<Isa>& info) {
  return info.param == Isa::kAvx512 ? "avx512" : info.param == Isa::kAvx2 ? "avx2" : "reference";
}

#define TROUPE_VECTOR_LEVELS(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(Levels, suite, ::testing::Values(Isa::kAvx2, Isa::kAvx512), \
                           ::troupe::kernels::test::level_name)
#define TROUPE_ALL_LEVELS(suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Levels, suite,                                                \
                           ::testing::Values(Isa::kReference, Isa::kAvx2, Isa::kAvx512), \
                           ::troupe::kernels::test::level_name)

}  // namespace troupe::kernels::test
