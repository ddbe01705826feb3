#include "runtime/store/kept_files.hpp"

#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/kept_lines.hpp"
#include "runtime/store/run_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

constexpr KeptRow kRows[] = {
#define KEPT(pattern, care, name) {pattern, Care::care, name},
#include "runtime/store/kept_files.def"
#undef KEPT
};

constexpr int kLookShare = 20;

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern == "") return path == "";
  if (pattern == "/") return path == "" || path.front() == '/';
  const char first = pattern.front();
  if (first == '*') {
    for (std::size_t taken = 0;; ++taken) {
      if (matches(pattern.substr(1), path.substr(taken))) return true;
      if (taken == path.size() || path[taken] == '/') return false;
    }
  }
  if (first == 'N') {
    std::size_t digits = 0;
    while (digits < path.size() && path[digits] >= '0' && path[digits] <= '9')
      ++digits;
    return digits >= 6 && matches(pattern.substr(1), path.substr(digits));
  }
  return path != "" && path.front() == first && matches(pattern.substr(1), path.substr(1));
}

// The step in a name like rollouts/step_000003.jsonl or ckpt/step_000003.
std::optional<std::uint64_t> step_in(const fs::path& file) {
  return step_of(file.stem().string());
}

}  // namespace

std::span<const KeptRow> kept_rows() {
  return kRows;
}

const KeptRow* row_of(std::string_view path) {
  for (const KeptRow& row : kRows)
    if (matches(row.pattern, path)) return &row;
  return nullptr;
}

core::Result<void> KeptFiles::put(const fs::path& file, const std::string& text, bool again) {
  forget(file);
  TROUPE_TRY(make_folder(file.parent_path()));
  TROUPE_TRY(replace_file(file, text));
  wrote(file, again ? std::optional(text) : std::nullopt);
  return {};
}

void KeptFiles::wrote(const fs::path& file, std::optional<std::string> text) {
  struct stat now {};
  const bool there = ::stat(file.c_str(), &now) == 0;
  const std::lock_guard lock(mutex_);
  if (!there) {  // it was, a moment ago
    Facts& facts = files_[file];
    facts.text = std::move(text);
    facts.pending = true;
    return;
  }
  const auto known = files_.find(file);
  const bool pending = known != files_.end() && known->second.pending;
  files_.insert_or_assign(
      file, Facts{now.st_dev, now.st_ino, S_ISREG(now.st_mode) ? std::uint64_t(now.st_size) : 0,
                  std::move(text), false, pending});
}

void KeptFiles::forget(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  files_.erase(file);
}

// Empty while the file is as it was written, or cannot be looked at for another reason.
std::string KeptFiles::how_lost(const fs::path& file, const Facts& known) {
  struct stat now {};
  if (::stat(file.c_str(), &now) != 0) return errno == ENOENT || errno == ENOTDIR ? "removed" : "";
  if (now.st_ino != known.inode || now.st_dev != known.device) return "replaced";
  const bool cut = S_ISREG(now.st_mode) && std::uint64_t(now.st_size) < known.bytes;
  return cut ? "cut" : "";
}

bool KeptFiles::is_lost(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(file);
  if (known == files_.end() || how_lost(file, known->second).empty()) return false;
  known->second.pending = !known->second.told;
  return true;
}

std::map<const KeptRow*, KeptFiles::Loss> KeptFiles::look() {
  using Clock = std::chrono::steady_clock;
  std::map<const KeptRow*, Loss> found;
  const Clock::time_point begin = Clock::now();
  const std::lock_guard lock(mutex_);
  if (begin < next_look_) return found;
  for (auto& [file, facts] : files_) {
    std::string how = how_lost(file, facts);
    if (how.empty() && facts.pending) how = "removed or cut";
    if (how.empty() || (facts.told && !facts.pending)) continue;
    facts.pending = false;
    facts.told = true;
    const KeptRow* const row = row_of(file.lexically_relative(folder_).generic_string());
    if (row == nullptr) continue;
    Loss& loss = found[row];
    if (const auto step = step_in(file)) loss.steps.insert(*step);
    loss.file = file;
    loss.how = loss.how.empty() || loss.how == how ? how : "removed or cut";
    if (!facts.text || (row->care == Care::kHead && loss.how == "replaced")) continue;
    auto made = make_folder(file.parent_path());
    if (made) made = replace_file(file, *facts.text);
    struct stat now {};
    if (made && ::stat(file.c_str(), &now) == 0) {
      facts.device = now.st_dev;
      facts.inode = now.st_ino;
      facts.told = false;
    } else if (!made) {
      loss.cannot = made.error().message;
    }
  }
  next_look_ = Clock::now() + kLookShare * (Clock::now() - begin);
  return found;
}

std::string told_of_loss(const KeptRow& row, const KeptFiles::Loss& loss) {
  const bool of_steps = !loss.steps.empty();
  std::string text(row.name);
  if (of_steps) text += " of " + updates_text(loss.steps);
  const bool many = of_steps && row.name.ends_with('s');
  text += (many ? " were " : " was ") + loss.how + " while the run went on";
  switch (row.care) {
    case Care::kHead:
      if (loss.how == "replaced") return text;
      [[fallthrough]];
    case Care::kMade:
      return text +
             (loss.cannot ? "; it cannot be made again: " + *loss.cannot : "; it is made again");
    case Care::kAnew:
      return text + "; a new one begins";
    case Care::kSaved:
      return text + "; a checkpoint is made, so that nothing depends on it";
    default:
      return text;
  }
}

}  // namespace troupe::store
