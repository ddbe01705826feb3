#include "runtime/store/kept_lines.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/ledger.hpp"
#include "runtime/store/limits.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace troupe::store {
namespace {

// What the descriptor's file holds, up to `bytes` of it.
Result<std::string> content_of(int file, std::uint64_t bytes, const std::filesystem::path& path) {
  std::string text(bytes, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count =
        ::pread(file, text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("read", path, errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  text.resize(got);
  return text;
}

// Calls `take` with the update of each line that has one, until it returns false.
template <class Take>
void each_step(std::string_view text, const StepOfLine& step_of, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto step = step_of(text.substr(0, end));
    if (step && !take(*step)) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<std::uint64_t> step_of_metrics(std::string_view line) {
  const auto row = nlohmann::json::parse(line, nullptr, false);
  if (!row.is_object() || row.contains("time/eval")) return std::nullopt;
  const auto step = row.find("step");
  if (step == row.end() || !step->is_number_unsigned()) return std::nullopt;
  return step->get<std::uint64_t>();
}

std::optional<std::uint64_t> step_of_record(std::string_view line) {
  const auto record = ledger_record(line);
  return record ? std::optional(record->step) : std::nullopt;
}

std::string updates_text(const std::set<std::uint64_t>& updates) {
  constexpr std::size_t kSpans_max = 4;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  std::size_t told = 0;
  for (const std::uint64_t one : updates) {
    if (!spans.empty() && spans.back().second + 1 == one) {
      spans.back().second = one;
    } else {
      if (spans.size() == kSpans_max) break;
      spans.emplace_back(one, one);
    }
    ++told;
  }
  std::string text = updates.size() == 1 ? "update " : "updates ";
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const bool last = i + 1 == spans.size() && told == updates.size();
    if (i > 0) text += last ? " and " : ", ";
    text += std::to_string(spans[i].first);
    if (spans[i].second > spans[i].first) text += " to " + std::to_string(spans[i].second);
  }
  if (told < updates.size()) text += " and " + std::to_string(updates.size() - told) + " more";
  return text;
}

Result<KeptLines> KeptLines::open(const std::filesystem::path& path, StepOfLine step_of) {
  KeptLines made(path, std::move(step_of));
  TROUPE_TRY(made.reopen());
  TROUPE_TRY_ASSIGN(text, content_of(made.file_.get(), made.size_, path));
  made.size_ = text.size();
  std::string_view newest = text;
  if (newest.size() > limits::kKeptLines_bytes_max) {
    newest.remove_prefix(newest.size() - limits::kKeptLines_bytes_max);
    newest.remove_prefix(std::min(newest.find('\n'), newest.size() - 1) + 1);
  }
  made.note_first(text);
  made.remember(newest);
  return made;
}

Result<void> KeptLines::reopen() {
  core::OwnedFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return io_failure("open", path_, errno);
  file_ = std::move(file);
  size_ = static_cast<std::uint64_t>(facts.st_size);
  return {};
}

void KeptLines::remember(std::string_view bytes) {
  if (bytes.empty()) return;
  newest_.emplace_back(bytes);
  newest_bytes_ += bytes.size();
  while (newest_.size() > 1 && newest_bytes_ > limits::kKeptLines_bytes_max) {
    newest_bytes_ -= newest_.front().size();
    newest_.pop_front();
  }
}

void KeptLines::note_first(std::string_view lines) {
  each_step(lines, step_of_, [this](std::uint64_t step) {
    first_ = step;
    return false;
  });
}

// The whole content, as far as it is known: what the cut file still has, then what is in memory.
std::string KeptLines::rest_of(std::string text) const {
  std::string newest;
  for (const std::string& one : newest_)
    newest += one;
  const std::uint64_t begin = size_ - newest.size();
  if (text.size() >= begin) return text.substr(0, begin) + newest;
  text.resize(text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1);
  return text + newest;
}

// The updates from the first that the file ever had to the last, without those in `text`.
std::set<std::uint64_t> KeptLines::lost_from(std::string_view text) const {
  std::set<std::uint64_t> has, lost;
  each_step(text, step_of_, [&has](std::uint64_t step) { return has.insert(step), true; });
  if (has.empty() || !first_) return lost;
  for (std::uint64_t one = *first_; one < *has.rbegin(); ++one)
    if (!has.contains(one)) lost.insert(one);
  return lost;
}

Result<std::optional<std::string>> KeptLines::mend() {
  struct stat ours {
  }, there{};
  if (::fstat(file_.get(), &ours) != 0) return io_failure("look at", path_, errno);
  const bool found = ::stat(path_.c_str(), &there) == 0;
  if (!found && errno != ENOENT) return io_failure("look at", path_, errno);
  const bool same = found && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  const bool whole = static_cast<std::uint64_t>(ours.st_size) >= size_;
  if (same && whole) return std::optional<std::string>();
  if (found && S_ISDIR(there.st_mode)) {
    return core::fail(core::ErrorCode::kResources,
                      path_.string() + " has become a folder while the run went on", "remove it");
  }
  TROUPE_TRY_ASSIGN(text, content_of(file_.get(), size_, path_));
  std::string told = path_.filename().string() +
                     (same    ? " was cut"
                      : found ? " was replaced"
                              : " was removed or renamed") +
                     " while the run went on; it is made again";
  if (text.size() < size_) text = rest_of(std::move(text));
  const auto lost = text.size() < size_ ? lost_from(text) : std::set<std::uint64_t>();
  if (!lost.empty()) {
    told +=
        ", but " + updates_text(lost) + (lost.size() == 1 ? " is" : " are") + " missing from it";
  } else if (text.size() == size_) {
    told += " with all of its lines";
  }
  TROUPE_TRY(replace_file(path_, text));
  TROUPE_TRY(reopen());
  return std::optional(std::move(told));
}

Result<void> KeptLines::append(std::string_view lines) {
  TROUPE_TRY(append_to(file_, path_, size_, lines));
  size_ += lines.size();
  if (!first_) note_first(lines);
  remember(lines);
  return {};
}

Result<void> KeptLines::sync() {
  if (::fdatasync(file_.get()) != 0) return io_failure("sync", path_, errno);
  return {};
}

}  // namespace troupe::store
