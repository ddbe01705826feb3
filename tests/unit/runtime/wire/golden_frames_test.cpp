// Frames written by earlier versions still read the same. Under tests/data/frames/v<protocol>/
// there is one frame for each kind of message, with a text of its fields beside it. Fields that
// were appended since are not in the text and do not matter; a renamed field is renamed in the text
// by hand.
//
// A new kind of message gets its frame from TROUPE_WRITE_FRAMES=1 test_wire --gtest_filter=Golden*;
// frames that exist are never written again.
#include "runtime/wire/envelope.hpp"
#include "tests/unit/runtime/wire/dynamic_frames.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace troupe::wire {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  return fs::path(TROUPE_TEST_DATA_DIR) / "frames" / ("v" + std::to_string(kProtocol));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_missing(const std::string& arm) {
  const fs::path frame_path = folder() / (arm + ".bin");
  if (fs::exists(frame_path)) return;
  fs::create_directories(folder());
  const auto filled = testing::fill_arm(arm);
  std::ofstream frame(frame_path, std::ios::binary);
  frame.write(reinterpret_cast<const char*>(filled.frame.bytes().data()),
              static_cast<std::streamsize>(filled.frame.size_bytes()));
  std::ofstream text(folder() / (arm + ".txt"));
  for (const auto& line : filled.lines)
    text << line << '\n';
}

TEST(GoldenFrames, EveryKindOfMessageHasOne) {
  for (const auto& arm : testing::envelope_arms()) {
    if (std::getenv("TROUPE_WRITE_FRAMES") != nullptr) write_missing(arm);
    EXPECT_TRUE(fs::exists(folder() / (arm + ".bin"))) << arm << ": see the head of this file";
    EXPECT_TRUE(fs::exists(folder() / (arm + ".txt"))) << arm;
  }
}

void expect_reads_as(const fs::path& bin) {
  const std::string bytes = read_file(bin);
  const auto frame = Frame::copy_of(std::as_bytes(std::span<const char>(bytes)));
  ASSERT_TRUE(frame) << bin << ": " << frame.error().message;
  auto incoming = Incoming::open(*frame);
  ASSERT_TRUE(incoming) << bin << ": " << incoming.error().message;
  EXPECT_EQ(incoming->header().sender, "data/0");
  EXPECT_EQ(incoming->header().request.value, 11u);
  EXPECT_EQ(frame_kind(*frame), bin.stem());
  std::ifstream text(fs::path(bin).replace_extension(".txt"));
  auto checked = incoming->read([&](schema::Envelope::Reader envelope) -> core::Result<int> {
    int lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      const auto split = line.find(" = ");
      EXPECT_EQ(testing::value_at(envelope, line.substr(0, split)), line.substr(split + 3))
          << bin << ": " << line;
    }
    return lines;
  });
  ASSERT_TRUE(checked) << bin << ": " << checked.error().message;
}

TEST(GoldenFrames, OldFramesReadTheSame) {
  int frames = 0;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() != ".bin") continue;
    expect_reads_as(entry.path());
    ++frames;
  }
  EXPECT_GE(frames, 30);
}

}  // namespace
}  // namespace troupe::wire
