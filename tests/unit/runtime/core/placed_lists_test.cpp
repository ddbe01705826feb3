// Lists in the host's memory stay where they are; those of a device go there as one block.
#include "runtime/core/placed_lists.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace troupe::core {
namespace {

// Plain memory that says it is not the host's, and counts what is sent to it.
class FarMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override { return host_memory().allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override {
    host_memory().release(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    ++uploads;
    host_memory().upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    host_memory().download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    host_memory().copy(to, from, bytes);
  }
  bool on_host() const noexcept override { return false; }
  int uploads = 0;
};

TEST(PlacedLists, OnTheHostAreTheListsThemselves) {
  const std::vector<int> a = {1, 2};
  const std::vector<double> b = {3};
  PlacedLists lists;
  const auto [at_a, at_b] = lists.place(host_memory(), a, b);
  EXPECT_EQ(at_a, a.data());
  EXPECT_EQ(at_b, b.data());
}

TEST(PlacedLists, OnADeviceAreOneBlock) {
  FarMemory far;
  PlacedLists lists;
  const std::vector<int> a = {1, 2, 3}, empty;
  const std::vector<double> b = {4, 5};
  const auto [at_a, at_empty, at_b] = lists.place(far, a, empty, b);
  EXPECT_EQ(far.uploads, 1);
  EXPECT_NE(at_a, a.data());
  EXPECT_EQ(std::vector<int>(at_a, at_a + 3), a);
  EXPECT_EQ(std::vector<double>(at_b, at_b + 2), b);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at_b) % 64, 0u);
  // Lists of up to the room that the first ones took stand where these stood.
  const std::vector<int> longer(16, 9), one = {8};
  const std::vector<double> last = {7};
  const auto [again, at_one, at_last] = lists.place(far, longer, one, last);
  EXPECT_EQ(again, at_a);
  EXPECT_EQ(at_one, at_empty);
  EXPECT_EQ(at_last, at_b);
  EXPECT_EQ(std::vector<int>(again, again + 16), longer);
  EXPECT_EQ(*at_one, 8);
  EXPECT_EQ(*at_last, 7.0);
  const std::vector<int> many(1000, 7);
  const auto [larger, other, kept] = lists.place(far, many, one, last);
  EXPECT_EQ(std::vector<int>(larger, larger + 1000), many);
  EXPECT_EQ(*other, 8);
  EXPECT_EQ(*kept, 7.0);
  EXPECT_EQ(far.uploads, 3);
}

TEST(Buffer, StaysInItsMemoryAndMoves) {
  FarMemory far;
  Buffer<float> buffer(4, far);
  buffer.reserve_discard(100);
  EXPECT_EQ(&buffer.memory(), &far);
  EXPECT_EQ(buffer.size(), 125);
  const float* const kept = buffer.data();
  buffer.reserve_discard(110, far);
  EXPECT_EQ(buffer.data(), kept);
  const std::vector<float> numbers = {1, 2, 3};
  buffer.upload(numbers);
  std::vector<float> found(3);
  buffer.download(found);
  EXPECT_EQ(found, numbers);
  buffer.reserve_discard(10, host_memory());
  EXPECT_EQ(&buffer.memory(), &host_memory());
  EXPECT_EQ(buffer[0], 0.0f);
  Buffer<float> moved = std::move(buffer);
  EXPECT_EQ(&moved.memory(), &host_memory());
  EXPECT_EQ(moved.size(), 12);
}

}  // namespace
}  // namespace troupe::core
