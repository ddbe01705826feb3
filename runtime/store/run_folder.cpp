#include "runtime/store/run_folder.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/ledger.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step_";
constexpr const char* kLinesOfStep = ".jsonl";

// Removes the files step_000123.jsonl of steps after `step`, or all of them if `step` is empty.
Result<void> remove_after(const fs::path& folder, std::optional<std::uint64_t> step) {
  TROUPE_TRY_ASSIGN(entries, list_folder(folder));
  for (const fs::directory_entry& entry : entries) {
    const fs::path& file = entry.path();
    const auto of_file = step_of(file.stem().string());
    if (file.extension() != kLinesOfStep || !of_file || (step && *of_file <= *step)) continue;
    std::error_code error;
    if (!fs::remove(file, error) && error) return io_failure("remove", file, error.value());
  }
  return {};
}

// Writes this process's id into the lock file, for the error message of a second process.
void sign(int fd) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) == 0) [[maybe_unused]]
    const auto written = ::pwrite(fd, text.data(), text.size(), 0);
}

std::string holder(int fd) {
  char text[32] = {};
  const auto count = ::pread(fd, text, sizeof text - 1, 0);
  std::string out(text, count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!out.empty() && (out.back() < '0' || out.back() > '9'))
    out.pop_back();
  return out.empty() ? "another process" : "process " + out;
}

}  // namespace

Result<RunFolder> RunFolder::open(const fs::path& path) {
  for (const char* part : {"rollouts", "eval", "ckpt", "tensorboard", "experience"})
    TROUPE_TRY(make_folder(path / part));
  const fs::path file = path / "run.lock";
  core::OwnedFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock) return io_failure("open", file, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kResources,
                "run folder " + path.string() + " is in use by " + holder(lock.get()),
                "wait for it or choose another --run.path");
  }
  sign(lock.get());
  TROUPE_TRY_ASSIGN(generation, Generation::take(path));
  RunFolder made(path, std::move(lock), std::move(generation));
  made.keep_generation();
  return made;
}

void RunFolder::keep_generation() const {
  const fs::path file = path_ / "generation.json";
  if (auto text = read_all(file)) kept_->wrote(file, std::move(*text));
}

fs::path RunFolder::rollouts_file(std::uint64_t step) const {
  return path_ / "rollouts" / (step_name(step) + kLinesOfStep);
}

fs::path RunFolder::eval_file(std::uint64_t step) const {
  return path_ / "eval" / (step_name(step) + kLinesOfStep);
}

Result<void> RunFolder::check_here() const {
  const fs::path lock = path_ / "run.lock";
  struct stat ours {
  }, there{};
  if (::fstat(lock_.get(), &ours) != 0) return io_failure("look at", lock, errno);
  const bool found = ::stat(lock.c_str(), &there) == 0;
  if (found && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
    return generation_.check();
  // A temporary failure of the file system does not count as a removal.
  if (!found && errno != ENOENT && errno != ENOTDIR && errno != ESTALE) return {};
  return fail(ErrorCode::kResources,
              "run folder " + path_.string() + " was removed or renamed while the run went on");
}

bool RunFolder::has_run() const {
  std::error_code error;
  if (fs::exists(metrics_file(), error) && fs::file_size(metrics_file(), error) > 0) return true;
  for (fs::directory_iterator it(checkpoint_folder(), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(kStepPrefix)) return true;
  }
  return false;
}

Result<void> RunFolder::cut_back(std::optional<std::uint64_t> step) const {
  TROUPE_TRY(cut_metrics(metrics_file(), step));
  TROUPE_TRY(cut_ledger(ledger_file(), step));
  TROUPE_TRY(remove_after(path_ / "rollouts", step));
  return remove_after(path_ / "eval", step);
}

Result<void> RunFolder::drop_experience() {
  TROUPE_TRY_ASSIGN(files, list_folder(experience_folder()));
  for (const fs::directory_entry& file : files)
    TROUPE_TRY(system_disk().remove(file.path()));
  TROUPE_TRY(forget_run(path_));
  TROUPE_TRY_SET(generation_, Generation::take(path_));
  keep_generation();
  return {};
}

std::string step_name(std::uint64_t step) {
  return std::string(kStepPrefix) + core::printed("%06lu", step);
}

std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  return core::number_of<std::uint64_t>(name);
}

fs::path free_sibling(const fs::path& path, const std::string& word) {
  const fs::path place = path.has_filename() ? path : path.parent_path();
  for (int number = 1;; ++number) {
    const fs::path target = place.string() + word + std::to_string(number);
    std::error_code error;
    if (!fs::exists(target, error)) return target;
  }
}

Result<fs::path> set_aside(const fs::path& path) {
  std::error_code error;
  const fs::path place = path.has_filename() ? path : path.parent_path();
  if (!fs::exists(place, error)) return fs::path();
  const fs::path target = free_sibling(place, ".old-");
  fs::rename(place, target, error);
  if (error) return io_failure("set aside", place, error.value());
  return target;
}

Result<void> cut_metrics(const fs::path& file, std::optional<std::uint64_t> step) {
  TROUPE_TRY_ASSIGN(text, read_all(file));
  std::size_t good = 0;  // bytes to keep
  std::optional<std::uint64_t> bad_line;
  std::uint64_t number = 0;
  bool past = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto newline = text.find('\n', at);
    const auto end = newline == text.npos ? text.size() : newline;
    const auto line =
        nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    ++number;
    const bool sound = newline != text.npos && line.is_object() && line.contains("step") &&
                       line["step"].is_number_unsigned();
    if (sound && bad_line) {
      return fail(ErrorCode::kData,
                  file.string() + ":" + std::to_string(*bad_line) + ": damaged line",
                  "remove it or start anew with --resume off");
    }
    if (!sound && !bad_line) bad_line = number;
    if (sound && (!step || line["step"].get<std::uint64_t>() > *step)) past = true;
    if (sound && !past) good = end + 1;
    at = end + 1;
  }
  return good == text.size() ? Result<void>{} : cut_file(file, good);
}

}  // namespace troupe::store
