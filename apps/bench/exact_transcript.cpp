// The file format: a magic number, the number of groups, for each group temperature, threads,
// prompt and samples (lists follow their lengths), and a CRC-32C of everything before it. All are
// 32-bit words in this machine's byte order, because the file never leaves the machine.
#include "apps/bench/exact_transcript.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <bit>
#include <fstream>
#include <span>
#include <string>
#include <system_error>

namespace troupe::bench {
namespace {

using Words32 = std::vector<std::uint32_t>;

constexpr std::uint32_t kMagic = 0x31545845;  // "EXT1"

std::uint32_t word(std::size_t count) {
  TROUPE_CHECK(count <= 0xFFFFFFFFu, "a transcript's list is too long for its file");
  return static_cast<std::uint32_t>(count);
}

std::uint32_t checksum(std::span<const std::uint32_t> words) {
  return core::crc32c(words.data(), words.size_bytes());
}

// Appends values to `words`.
struct WordWriter {
  template <class T>
  void value(T value) {
    words.push_back(std::bit_cast<std::uint32_t>(value));
  }
  template <class T>
  void size(const std::vector<T>& list) {
    words.push_back(word(list.size()));
  }
  template <class T>
  void as_long(const std::vector<T>& list, std::size_t size) {
    TROUPE_CHECK(list.size() == size, "one log-prob a token");
  }
  Words32 words;
};

// Reads values from the front of `words`. Sets `good` to false at a list longer than the rest.
struct WordReader {
  template <class T>
  void value(T& value) {
    if (words.empty()) good = false;
    if (!good) return;
    value = std::bit_cast<T>(words.front());
    words = words.subspan(1);
  }
  template <class T>
  void size(std::vector<T>& list) {  // each item takes at least one word
    std::uint32_t count = 0;
    value(count);
    if (count > words.size()) good = false;
    list.resize(good ? count : 0);
  }
  template <class T>
  void as_long(std::vector<T>& list, std::size_t size) {
    list.resize(size);
  }
  std::span<const std::uint32_t> words;
  bool good = true;
};

// Visits all of a transcript, with a WordWriter or a WordReader, so that both use the same order.
template <class Io, class AnyTranscript>
void walk(Io& io, AnyTranscript& transcript) {
  io.size(transcript.groups);
  for (auto& group : transcript.groups) {
    io.value(group.temperature);
    io.value(group.threads);
    io.size(group.prompt);
    for (auto& token : group.prompt)
      io.value(token);
    io.size(group.samples);
    for (auto& sample : group.samples) {
      io.size(sample.tokens);
      for (auto& token : sample.tokens)
        io.value(token);
      io.as_long(sample.logprobs, sample.tokens.size());
      for (auto& logprob : sample.logprobs)
        io.value(logprob);
    }
  }
}

core::Failure damaged(const std::filesystem::path& file, const char* why) {
  return core::fail(ErrorCode::kData, file.string() + ": " + why,
                    "it must be a whole transcript, as `troupe bench exact --file` writes it");
}

}  // namespace

std::int64_t Transcript::tokens() const {
  std::int64_t count = 0;
  for (const TranscriptGroup& group : groups) {
    for (const TranscriptSample& sample : group.samples)
      count += std::ssize(sample.tokens);
  }
  return count;
}

core::Result<void> write_transcript(const std::filesystem::path& file,
                                    const Transcript& transcript) {
  WordWriter writer{{kMagic}};
  walk(writer, transcript);
  Words32& out = writer.words;
  out.push_back(checksum(out));
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(out.data()),
               static_cast<std::streamsize>(out.size() * sizeof(std::uint32_t)));
  stream.close();
  if (!stream) {
    return core::fail(ErrorCode::kResources, file.string() + ": cannot be written",
                      "is the disk full? --file names another place");
  }
  return {};
}

core::Result<Transcript> read_transcript(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  if (error) return core::fail(ErrorCode::kNotFound, file.string() + ": " + error.message());
  if (bytes > kTranscript_bytes_max || bytes < 12 || bytes % 4 != 0)
    return damaged(file, "its size is wrong");
  Words32 words(bytes / 4);
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(bytes));
  if (!stream) return damaged(file, "it cannot be read");
  const std::span<const std::uint32_t> content(words.data(), words.size() - 1);
  if (words.front() != kMagic || words.back() != checksum(content))
    return damaged(file, "its checksum is wrong");
  WordReader reader{content.subspan(1)};
  Transcript transcript;
  walk(reader, transcript);
  if (!reader.good || !reader.words.empty()) return damaged(file, "its lists do not fit into it");
  return transcript;
}

}  // namespace troupe::bench
