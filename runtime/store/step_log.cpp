#include "runtime/store/step_log.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/little_endian.hpp"
#include "runtime/store/run_folder.hpp"

#include <algorithm>
#include <utility>

namespace troupe::store {
namespace {

constexpr std::string_view kLogSuffix = ".log";
constexpr std::size_t kFrame_bytes = 8;

// Appends and syncs; behind a gap when something of the file was lost.
core::Result<void> append_to(Disk& disk,
                             KeptFiles* kept,
                             const std::filesystem::path& file,
                             const std::string& bytes) {
  if (kept != nullptr && !disk.exists(file.parent_path()))
    TROUPE_TRY(disk.make_folder(file.parent_path()));
  if (kept != nullptr && kept->is_lost(file)) {
    std::string gap;
    add_record(gap, "");
    TROUPE_TRY(disk.append(file, gap));
    kept->wrote(file);
  }
  TROUPE_TRY(disk.append(file, bytes));
  if (kept != nullptr) kept->wrote(file);
  return disk.sync(file);
}

}  // namespace

void add_record(std::string& out, std::string_view record) {
  out += core::little_endian(record.size(), 4);
  out += core::little_endian(core::text_crc32c(record), 4);
  out += record;
}

std::optional<std::string_view> next_record(std::string_view& rest) {
  if (rest.size() < kFrame_bytes) return std::nullopt;
  const std::uint64_t length = core::from_little_endian(rest, 4);
  const std::uint64_t crc = core::from_little_endian(rest.substr(4), 4);
  if (rest.size() - kFrame_bytes < length) return std::nullopt;
  const std::string_view record = rest.substr(kFrame_bytes, length);
  if (core::text_crc32c(record) != crc) return std::nullopt;
  rest.remove_prefix(kFrame_bytes + length);
  return record;
}

std::filesystem::path StepLog::file_of(std::uint64_t step) const {
  return folder_ / (step_name(step) + std::string(kLogSuffix));
}

void StepLog::add(std::uint64_t step, std::string_view record) {
  add_record(collected_[step], record);
}

StepLog::Batch StepLog::take() {
  return std::exchange(collected_, {});
}

void StepLog::put_back(Batch batch) {
  for (auto& [step, bytes] : batch) {
    std::string& file = collected_[step];
    file.insert(0, bytes);
  }
}

core::Result<void> StepLog::write(Batch& batch) const {
  bool again = kept_ != nullptr;  // a user may remove the folder at any moment
  while (!batch.empty()) {
    const auto first = batch.begin();
    const std::filesystem::path file = file_of(first->first);
    auto written = append_to(disk_, kept_.get(), file, first->second);
    if (!written && std::exchange(again, false) && !disk_.exists(file)) continue;
    if (!written) return written;
    batch.erase(first);
  }
  return {};
}

core::Result<std::vector<std::uint64_t>> StepLog::steps() const {
  TROUPE_TRY_ASSIGN(files, disk_.list(folder_));
  std::vector<std::uint64_t> steps;
  for (const std::string& name : files) {
    if (!name.ends_with(kLogSuffix)) continue;
    const auto step = step_of(std::string_view(name).substr(0, name.size() - kLogSuffix.size()));
    if (step) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

core::Result<StepLog::Content> StepLog::read(std::uint64_t step) const {
  TROUPE_TRY_ASSIGN(text, disk_.read_file(file_of(step)));
  Content content;
  std::string_view rest = text;
  while (const auto record = next_record(rest))
    content.records.emplace_back(*record);
  content.cut_bytes = rest.size();
  content.bytes = text.size() - rest.size();
  if (rest.empty()) return content;
  TROUPE_TRY(disk_.cut(file_of(step), content.bytes));
  return content;
}

core::Result<void> StepLog::cut(std::uint64_t step, std::uint64_t bytes) const {
  if (kept_) kept_->forget(file_of(step));
  return disk_.cut(file_of(step), bytes);
}

core::Result<void> StepLog::remove(std::uint64_t step) const {
  if (kept_) kept_->forget(file_of(step));
  return disk_.remove(file_of(step));
}

core::Result<void> StepLog::remove_up_to(std::uint64_t step) const {
  TROUPE_TRY_ASSIGN(all, steps());
  for (const std::uint64_t one : all) {
    if (one <= step) TROUPE_TRY(remove(one));
  }
  return {};
}

core::Result<std::uint64_t> StepLog::size_of(std::uint64_t step) const {
  return disk_.size_of(file_of(step));
}

}  // namespace troupe::store
