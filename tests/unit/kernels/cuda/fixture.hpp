// What the tests of device kernels share: the device (emulated, or a GPU: ctest says which library
// by TROUPE_CUDA_LIBRARY), arrays on it between poisoned surroundings, and the reference to compare
// with. Every case of kernels/ops.hpp is checked against kernels/reference, bit for bit.
#pragma once

#include "kernels/cuda/library.hpp"
#include "tests/unit/kernels/support.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

namespace troupe::kernels::cuda::test {

using kernels::test::kInf;
using kernels::test::kNan;
using kernels::test::reference;
using kernels::test::same_bits;

// The process's one device; null when there is none, then `why` says why.
inline Device* device(std::string* why = nullptr) {
  static std::string reason;
  static const std::unique_ptr<Device> opened = [] {
    auto result = open_device(0);
    if (!result) reason = result.failure().error.message;
    return result ? std::move(*result) : nullptr;
  }();
  if (why != nullptr) *why = reason;
  return opened.get();
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (device(&why) == nullptr) GTEST_SKIP() << why;
    flush_denormals();
    device()->enter();
  }
  static const Ops& ops() { return device()->ops(); }
};

// A copy of host numbers on the device, 16 NaN bytes patterns before and behind.
template <class T>
class Array {
 public:
  explicit Array(std::vector<T> values) : host_(std::move(values)) {
    const std::size_t bytes = host_.size() * sizeof(T);
    memory_ = static_cast<char*>(device()->memory().allocate(bytes + 2 * kGuard));
    const std::vector<char> poison(bytes + 2 * kGuard, static_cast<char>(0x7f));
    device()->memory().upload(memory_, poison.data(), poison.size());
    device()->memory().upload(memory_ + kGuard, host_.data(), bytes);
  }
  explicit Array(std::size_t count, T value = T{}) : Array(std::vector<T>(count, value)) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { device()->memory().release(memory_, host_.size() * sizeof(T) + 2 * kGuard); }

  T* data() { return reinterpret_cast<T*>(memory_ + kGuard); }
  // What the reference works on.
  std::vector<T>& host() { return host_; }
  // What stands on the device now. Fails the test when something was written beside it.
  std::vector<T> read() const {
    const std::size_t bytes = host_.size() * sizeof(T);
    std::vector<char> all(bytes + 2 * kGuard);
    device()->memory().download(all.data(), memory_, all.size());
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(all[i], 0x7f) << "written " << kGuard - i << " bytes before the array";
      EXPECT_EQ(all[kGuard + bytes + i], 0x7f) << "written " << i << " bytes behind the array";
    }
    std::vector<T> out(host_.size());
    std::memcpy(out.data(), all.data() + kGuard, bytes);
    return out;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  std::vector<T> host_;
  char* memory_ = nullptr;
};

inline std::vector<float> normal(std::int64_t count, std::uint32_t seed, float deviation = 1.0f) {
  const auto values = kernels::test::Guarded::random(count, seed, deviation);
  return {values.data(), values.data() + count};
}

// The device's numbers are the host's (every NaN counts as the same).
inline ::testing::AssertionResult same(const Array<float>& actual,
                                       const std::vector<float>& expected) {
  const std::vector<float> values = actual.read();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!same_bits(expected[i], values[i]))
      return ::testing::AssertionFailure() << "element " << i << " of " << expected.size() << ": "
                                           << std::hexfloat << expected[i] << " and " << values[i];
  return ::testing::AssertionSuccess();
}

}  // namespace troupe::kernels::cuda::test
