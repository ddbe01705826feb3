// Frames from an enemy: whatever the bytes, reading ends with an error or a value, touches no
// memory outside, and copies no more than the traversal limit allows. The entry point is
// libFuzzer's; the driver below spoils the golden frames at random under a fixed seed, so that it
// is a normal test (and a sharp one in the asan preset).
#include "runtime/core/rng.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/unit/runtime/wire/dynamic_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

struct Tally {
  std::uint64_t framed = 0, opened = 0, valid = 0;
} g_tally;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const auto frame = wire::Frame::copy_of(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (!frame) return 0;
  ++g_tally.framed;
  static_cast<void>(wire::read_failure(*frame));
  static_cast<void>(wire::read_host_request(*frame));
  static_cast<void>(wire::frame_kind(*frame));
  const auto incoming = wire::Incoming::open(*frame);
  if (!incoming) return 0;
  ++g_tally.opened;
  const auto copied =
      incoming->read([](schema::Envelope::Reader envelope) -> core::Result<std::uint64_t> {
        return wire::testing::visit(envelope);
      });
  if (!copied) return 0;
  ++g_tally.valid;
  if (*copied > 64 * (size + 1024)) std::abort();
  return 0;
}

namespace troupe::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> corpus() {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(TROUPE_TEST_DATA_DIR) / "frames")) {
    if (entry.path().extension() == ".bin") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> frames;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    frames.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return frames;
}

void put_word(Bytes& bytes, std::size_t word, std::uint64_t value) {
  std::memcpy(bytes.data() + word * 8, &value, 8);
}

std::uint64_t get_word(const Bytes& bytes, std::size_t word) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + word * 8, 8);
  return value;
}

// One change. Most keep the length, so that the spoilt frame gets past the segment table.
void spoil(Bytes& bytes, core::Rng& rng, const std::vector<Bytes>& others) {
  const std::size_t words = bytes.size() / 8;
  if (words == 0) return;
  const std::size_t word = rng.next_below(words);
  const std::uint64_t old = get_word(bytes, word);
  switch (rng.next_below(9)) {
    case 0:
      return put_word(bytes, word, old ^ 1ull << rng.next_below(64));
    case 1:
      return put_word(bytes, word, rng.next_u64());
    case 2:
      return put_word(bytes, word, old + rng.next_below(17) - 8);
    case 3:
      return put_word(bytes, word, get_word(bytes, rng.next_below(words)));
    case 4:
      return put_word(bytes, word, old | 0xFFFFFFF800000000ull);  // absurd list sizes
    case 5:
      return put_word(bytes, word, (old & ~3ull) | rng.next_below(4));  // another kind of pointer
    case 6:
      return put_word(bytes, word, old ^ (rng.next_below(64) << 2));  // another target
    case 7: {
      const Bytes& other = others[rng.next_below(others.size())];
      std::copy_n(other.begin(), std::min(other.size(), bytes.size() / 2), bytes.begin());
      return;
    }
    default:
      bytes.resize(rng.next_below(bytes.size() + 1));
  }
}

TEST(FuzzFrame, SpoiltFramesEndInAnErrorOrAValue) {
  const auto frames = corpus();
  ASSERT_GE(frames.size(), 30u);
  g_tally = {};
  for (const auto& frame : frames)
    LLVMFuzzerTestOneInput(frame.data(), frame.size());
  EXPECT_EQ(g_tally.valid, frames.size());
  core::Rng rng(20240917);
  constexpr int kRounds = 200'000;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bytes = frames[rng.next_below(frames.size())];
    for (std::uint64_t n = 1 + rng.next_below(4); n > 0; --n)
      spoil(bytes, rng, frames);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  // The spoilt frames must get deep enough to mean something.
  EXPECT_GT(g_tally.opened, kRounds / 4u);
  EXPECT_LT(g_tally.valid, g_tally.opened);
  RecordProperty("framed", static_cast<int>(g_tally.framed));
  RecordProperty("opened", static_cast<int>(g_tally.opened));
  RecordProperty("valid", static_cast<int>(g_tally.valid));
}

}  // namespace
}  // namespace troupe::wire
