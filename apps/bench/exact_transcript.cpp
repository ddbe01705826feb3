// The file: magic, then per group temperature, threads, sizes, prompt and samples, all as words of
// 32 bits in this machine's order; a CRC-32C of everything before it ends the file. It never leaves
// the machine.
#include "apps/bench/exact_transcript.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"

#include <bit>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace troupe::app {
namespace {

using core::ErrorCode;
using Words32 = std::vector<std::uint32_t>;

constexpr std::uint32_t kMagic = 0x31545845;  // "EXT1"

std::uint32_t word(std::size_t count) {
  TROUPE_CHECK(count <= 0xFFFFFFFFu, "a transcript's list is too long for its file");
  return static_cast<std::uint32_t>(count);
}

void append_tokens(Words32& out, const std::vector<std::int32_t>& tokens) {
  for (const std::int32_t token : tokens)
    out.push_back(static_cast<std::uint32_t>(token));
}

std::uint32_t checksum(std::span<const std::uint32_t> words) {
  return core::crc32c(words.data(), words.size_bytes());
}

// Takes words off the front; a list longer than what is left ends the reading.
class WordReader {
 public:
  explicit WordReader(std::span<const std::uint32_t> words) : rest_(words) {}

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }

  std::uint32_t next() {
    if (rest_.empty()) good_ = false;
    if (!good_) return 0;
    const std::uint32_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }

  // A count of things that take at least one word each.
  std::size_t count() {
    const std::uint32_t value = next();
    if (value > rest_.size()) good_ = false;
    return good_ ? value : 0;
  }

  std::vector<std::int32_t> tokens(std::size_t size) {
    std::vector<std::int32_t> result;
    for (std::size_t i = 0; i < size && good_; ++i)
      result.push_back(static_cast<std::int32_t>(next()));
    return result;
  }

 private:
  std::span<const std::uint32_t> rest_;
  bool good_ = true;
};

TranscriptGroup read_group(WordReader& in) {
  TranscriptGroup group;
  group.temperature = std::bit_cast<float>(in.next());
  group.threads = static_cast<std::int32_t>(in.next());
  group.prompt = in.tokens(in.count());
  const std::size_t samples = in.count();
  for (std::size_t i = 0; i < samples && in.good(); ++i) {
    TranscriptSample sample;
    const std::size_t size = in.count();
    sample.tokens = in.tokens(size);
    for (std::size_t t = 0; t < size; ++t)
      sample.logprobs.push_back(std::bit_cast<float>(in.next()));
    group.samples.push_back(std::move(sample));
  }
  return group;
}

core::Failure damaged(const std::filesystem::path& file, const char* why) {
  return core::fail(ErrorCode::kData, file.string() + ": " + why +
                                          "; it must be a whole transcript, as `troupe bench exact "
                                          "--file` writes it");
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
  Words32 out{kMagic, word(transcript.groups.size())};
  for (const TranscriptGroup& group : transcript.groups) {
    out.push_back(std::bit_cast<std::uint32_t>(group.temperature));
    out.push_back(static_cast<std::uint32_t>(group.threads));
    out.push_back(word(group.prompt.size()));
    append_tokens(out, group.prompt);
    out.push_back(word(group.samples.size()));
    for (const TranscriptSample& sample : group.samples) {
      TROUPE_CHECK(sample.tokens.size() == sample.logprobs.size(), "one log-prob a token");
      out.push_back(word(sample.tokens.size()));
      append_tokens(out, sample.tokens);
      for (const float logprob : sample.logprobs)
        out.push_back(std::bit_cast<std::uint32_t>(logprob));
    }
  }
  out.push_back(checksum(out));
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(out.data()),
               static_cast<std::streamsize>(out.size() * sizeof(std::uint32_t)));
  stream.close();
  if (!stream) {
    return core::fail(ErrorCode::kResources, file.string() +
                                                 ": cannot be written; is the disk "
                                                 "full? --file names another place");
  }
  return {};
}

core::Result<Transcript> read_transcript(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  if (error) return core::fail(ErrorCode::kNotFound, file.string() + ": " + error.message());
  if (bytes > kTranscript_bytes_max || bytes < 12 || bytes % 4 != 0) {
    return damaged(file, "its size is wrong");
  }
  Words32 words(bytes / 4);
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(bytes));
  if (!stream) return damaged(file, "it cannot be read");
  const std::span<const std::uint32_t> content(words.data(), words.size() - 1);
  if (words.front() != kMagic || words.back() != checksum(content)) {
    return damaged(file, "its checksum is wrong");
  }
  WordReader in(content.subspan(1));
  Transcript transcript;
  const std::size_t groups = in.count();
  for (std::size_t i = 0; i < groups && in.good(); ++i)
    transcript.groups.push_back(read_group(in));
  if (!in.good() || !in.at_end()) return damaged(file, "its lists do not fit into it");
  return transcript;
}

}  // namespace troupe::app
