// What is refused before anything is parsed.
#include "runtime/wire/frame.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/wire/limits.hpp"
#include "tests/unit/runtime/wire/raw_frames.hpp"

#include <gtest/gtest.h>

namespace troupe::wire {
namespace {

using core::ErrorCode;
using testing::bytes_of;
using testing::Words;

void expect_refused(const Words& words, const std::string& part) {
  const auto frame = Frame::from_words(words);
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, ErrorCode::kData);
  EXPECT_NE(frame.error().message.find(part), std::string::npos) << frame.error().message;
}

TEST(Frame, KeepsItsBytesAndSharesThemBetweenCopies) {
  const Frame frame = testing::score_request(3);
  const Frame copy = frame;
  EXPECT_EQ(copy.words().data(), frame.words().data());
  const auto again = Frame::copy_of(frame.bytes());
  ASSERT_TRUE(again);
  EXPECT_NE(again->words().data(), frame.words().data());
  EXPECT_TRUE(std::equal(again->bytes().begin(), again->bytes().end(), frame.bytes().begin()));
}

TEST(Frame, CopyAcceptsBytesOfAnyAlignment) {
  const Frame frame = testing::score_request(1);
  std::vector<std::byte> shifted(frame.size_bytes() + 3);
  std::copy(frame.bytes().begin(), frame.bytes().end(), shifted.begin() + 3);
  const auto copy = Frame::copy_of(std::span<const std::byte>(shifted).subspan(3));
  ASSERT_TRUE(copy);
  EXPECT_TRUE(Incoming::open(*copy).has_value());
}

TEST(Frame, RefusesEveryTruncation) {
  const Frame frame = testing::score_request(2);
  for (std::size_t size = 0; size < frame.size_bytes(); ++size) {
    EXPECT_FALSE(Frame::copy_of(frame.bytes().first(size))) << size;
  }
}

TEST(Frame, RefusesTrailingBytes) {
  Words words = testing::words_of(testing::score_request(1));
  words.push_back(0);
  expect_refused(words, "the frame has");
}

TEST(Frame, AcceptsTheBoundAndRefusesOneWordMore) {
  const std::size_t most = limits::kMessage_bytes_max / 8;
  EXPECT_TRUE(Frame::from_words(testing::framed(Words(most - 1))));
  expect_refused(testing::framed(Words(most)), "more than the 100663296 of a message");
}

TEST(Frame, RefusesAbsurdSegmentCounts) {
  expect_refused({0xFFFFFFFFu, 0}, "4294967296 segments");
  expect_refused({64, 0}, "65 segments");
  expect_refused(Words(4, 63), "the segment table is cut off");
}

TEST(Frame, RefusesSegmentSizesThatDoNotAddUp) {
  expect_refused({std::uint64_t{2} << 32, 0}, "its segments have 24 bytes");
  expect_refused({std::uint64_t{0xFFFFFFFF} << 32, 0}, "its segments have");
  // 64 segments of the largest size each: the sum must not wrap around.
  Words words(34, ~std::uint64_t{0});
  words[0] = 63 | std::uint64_t{0xFFFFFFFF} << 32;
  expect_refused(words, "its segments have");
}

TEST(Frame, RefusesGarbage) {
  core::Rng rng(1);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    Words words(1 + rng.next_below(64));
    for (auto& word : words)
      word = rng.next_u64();
    accepted += Frame::from_words(words) ? 1 : 0;
  }
  EXPECT_EQ(accepted, 0);
}

}  // namespace
}  // namespace troupe::wire
