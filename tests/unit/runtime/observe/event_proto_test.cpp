// TensorBoard's event files: the framing and one event by hand. tests/oracle/tensorboard_test.py
// reads whole files with the real package.
#include "runtime/observe/event_proto.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/observe/tensorboard_writer.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace troupe;

TEST(EventProto, ScalarEventByHand) {
  // Event{1: 1.0 (fixed64), 2: 300 (varint AC 02), 5: Summary{1: Value{1: "a", 2: 0.5f}}}
  const std::string expected = std::string("\x09\0\0\0\0\0\0\xF0\x3F", 9) + "\x10\xAC\x02" +
                               "\x2A\x0A" + "\x0A\x08" + "\x0A\x01" + "a" +
                               std::string("\x15\0\0\0\x3F", 5);
  EXPECT_EQ(observe::scalars_event(1.0, 300, {{"a", 0.5}}), expected);
}

TEST(EventProto, FrameHoldsLengthAndMaskedChecksums) {
  const std::string frame = observe::framed("abc");
  ASSERT_EQ(frame.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(frame.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(frame.substr(12, 3), "abc");
  std::uint32_t stored = 0;
  std::memcpy(&stored, frame.data() + 15, 4);
  const std::uint32_t crc = core::text_crc32c("abc");
  EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

TEST(TensorboardWriter, FileIsNamedAndStartsWithTheVersion) {
  test::TempFolder temp;
  auto writer = observe::TensorboardWriter::create(temp.path(), 1700000000.5, std::nullopt);
  ASSERT_TRUE(writer);
  auto other = observe::TensorboardWriter::create(temp.path(), 1700000000.5, std::nullopt);
  ASSERT_TRUE(other);
  EXPECT_NE(writer->path(), other->path());
  EXPECT_EQ(writer->path().filename().string().rfind("events.out.tfevents.1700000000.", 0), 0u);
  EXPECT_NE(test::read_file(writer->path()).find("brain.Event:2"), std::string::npos);
}

TEST(TensorboardWriter, ARunThatBeginsAnewHidesWhatCameBefore) {
  test::TempFolder temp;
  auto writer = observe::TensorboardWriter::create(temp.path(), 1700000000.5, std::nullopt);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->drop_earlier(1700000001.5));
  const std::string start = observe::framed(observe::session_start_event(1700000001.5, 0));
  EXPECT_TRUE(test::read_file(writer->path()).ends_with(start));
}

}  // namespace
