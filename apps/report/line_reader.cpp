#include "apps/report/line_reader.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::report {
namespace {

constexpr std::size_t kPiece_bytes = 256 << 10;

// Not a pipe or a device, which could be waited for.
bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::string counted(std::uint64_t count, const char* one, const char* more) {
  return count == 1 ? std::string("1 ") + one : std::to_string(count) + " " + more;
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& file, std::size_t line_bytes_max)
    : file_(is_file(file) ? std::fopen(file.c_str(), "rbe") : nullptr),
      line_bytes_max_(line_bytes_max) {}

// Adds a piece of the file to the buffer; false at its end.
bool LineReader::fill() {
  if (begin_ > 0) buffer_.erase(0, std::exchange(begin_, 0));
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPiece_bytes);
  const std::size_t got = std::fread(buffer_.data() + before, 1, kPiece_bytes, file_.get());
  buffer_.resize(before + got);
  broken_ = broken_ || std::ferror(file_.get()) != 0;
  return got > 0;
}

std::optional<std::string_view> LineReader::next() {
  if (!opened()) return std::nullopt;
  bool skips = false;        // within a line that is too long
  std::size_t searched = 0;  // bytes after begin_ without a newline
  for (;;) {
    const auto end = buffer_.find('\n', begin_ + searched);
    if (end != buffer_.npos) {
      const std::string_view found(buffer_.data() + begin_, end - begin_);
      begin_ = end + 1;
      searched = 0;
      ++line_;
      bytes_ += found.size() + 1;
      if (!skips && found.size() <= line_bytes_max_) return found;
      ++too_long_;
      skips = false;
      continue;
    }
    searched = buffer_.size() - begin_;
    if (searched > line_bytes_max_) {
      skips = true;
      bytes_ += searched;
      buffer_.clear();
      begin_ = searched = 0;
    }
    if (fill()) continue;
    torn_ = skips || begin_ < buffer_.size();
    file_.reset();
    return std::nullopt;
  }
}

ObjectsRead read_objects(const std::filesystem::path& file,
                         const std::string& name,
                         const ObjectBounds& bounds,
                         Notes& notes,
                         const std::function<bool(nlohmann::ordered_json& object)>& one) {
  LineReader reader(file, bounds.line_bytes_max);
  ObjectsRead read;
  read.there = reader.opened();
  std::uint64_t damaged = 0, first_damaged = 0;
  bool ended = false;
  while (const auto line = reader.next()) {
    if (reader.bytes() > bounds.bytes_max) {
      notes.add(name + ": only the first " + std::to_string(bounds.bytes_max >> 20) +
                " MiB are read");
      ended = true;
      break;
    }
    auto object = parse::bounded_json<nlohmann::ordered_json>(*line, {});
    if (!object || !object->is_object()) {
      if (damaged++ == 0) first_damaged = reader.line();
      continue;
    }
    ++read.objects;
    ended = !one(*object);
    if (ended) break;
  }
  if (damaged > 0) {
    notes.add(name + ": " + counted(damaged, "line is", "lines are") +
              " no JSON object and left out; the first is line " + std::to_string(first_damaged));
  }
  if (reader.too_long() > 0) {
    notes.add(name + ": " + counted(reader.too_long(), "line is", "lines are") + " longer than " +
              std::to_string(bounds.line_bytes_max >> 20) + " MiB and left out");
  }
  if (reader.torn()) {
    notes.add(name +
              ": the last line has no end (the run is writing it, or was killed); it is "
              "left out");
  }
  if (reader.broken()) notes.add(name + ": cannot be read to its end");
  read.whole = read.there && !ended && damaged == 0 && reader.too_long() == 0 && !reader.torn() &&
               !reader.broken();
  return read;
}

std::optional<WholeFile> read_whole(const std::filesystem::path& file, std::size_t bytes_max) {
  if (!is_file(file)) return std::nullopt;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"),
                                                           std::fclose);
  if (!in) return std::nullopt;
  WholeFile whole;
  while (whole.text.size() <= bytes_max) {
    const std::size_t before = whole.text.size();
    const std::size_t wanted = std::min(kPiece_bytes, bytes_max + 1 - before);
    if (wanted == 0) break;
    whole.text.resize(before + wanted);
    const std::size_t got = std::fread(whole.text.data() + before, 1, wanted, in.get());
    whole.text.resize(before + got);
    if (got == 0) break;
  }
  if (std::ferror(in.get()) != 0) return std::nullopt;
  whole.cut = whole.text.size() > bytes_max;
  if (whole.cut) whole.text.resize(bytes_max);
  return whole;
}

}  // namespace troupe::report
