// Files as two texts: what is read, and what a crash leaves.
#include "tests/sim/world/sim_disk.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

core::Failure full_disk(const std::string& path) {
  return core::fail(core::ErrorCode::kNoRoom, "cannot write " + path + ": no space is left");
}

bool is_under(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

// Adds the name of `path` if it lies in `folder` itself.
void add_child(const std::string& folder,
               const std::string& path,
               std::vector<std::string>& names) {
  if (!path.starts_with(folder + "/")) return;
  std::string name = path.substr(folder.size() + 1);
  if (name.find('/') == name.npos) names.push_back(std::move(name));
}

}  // namespace

bool SimDisk::exists(const std::string& path) const {
  return files_.contains(path) || folders_.contains(path);
}

core::Result<void> SimDisk::write(const std::string& path, std::string_view content) {
  if (full_) return full_disk(path);
  files_[path].now = std::string(content);
  return {};
}

core::Result<void> SimDisk::append(const std::string& path, std::string_view content) {
  if (full_) return full_disk(path);
  files_[path].now += content;
  return {};
}

std::string SimDisk::read(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? std::string() : found->second.now;
}

void SimDisk::sync(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  found->second.synced = found->second.now;
  found->second.there = true;
}

void SimDisk::cut(const std::string& path, std::size_t bytes) {
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  found->second.now.resize(std::min(bytes, found->second.now.size()));
  sync(path);
}

void SimDisk::commit(const std::string& from, const std::string& to) {
  remove(to);
  std::map<std::string, File> moved;
  for (auto place = files_.begin(); place != files_.end();) {
    if (!is_under(place->first, from)) {
      ++place;
      continue;
    }
    File file = std::move(place->second);
    file.synced = file.now;
    file.there = true;
    moved.emplace(to + place->first.substr(from.size()), std::move(file));
    place = files_.erase(place);
  }
  files_.merge(moved);
  folders_.erase(from);
  folders_.insert(to);
}

void SimDisk::remove(const std::string& path) {
  std::erase_if(files_, [&path](const auto& entry) { return is_under(entry.first, path); });
  std::erase_if(folders_, [&path](const auto& folder) { return is_under(folder, path); });
}

std::vector<std::string> SimDisk::folders_in(const std::string& path) const {
  std::vector<std::string> names;
  for (const std::string& folder : folders_)
    add_child(path, folder, names);
  return names;
}

std::vector<std::string> SimDisk::files_in(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& [file, content] : files_)
    add_child(path, file, names);
  return names;
}

void SimDisk::lose_unsynced() {
  std::erase_if(files_, [](const auto& entry) { return !entry.second.there; });
  for (auto& [path, file] : files_)
    file.now = file.synced;
}

bool SimDisk::interrupts(const Process& process, const std::string& path, std::string_view added) {
  if (ended_.contains(process.number())) return true;
  if (writes_left_ == 0 || --writes_left_ > 0) return false;
  if (!added.empty() && !full_) {
    files_[path].now += added.substr(0, added.size() / 2);
    if (torn_) sync(path);
  }
  ended_.insert(process.number());
  std::exchange(crash_, nullptr)(process);
  return true;
}

core::Result<void> DiskView::check(const std::string& path, std::string_view added) const {
  if (process_.alive() && !disk_.interrupts(process_, path, added)) return {};
  return core::fail(core::ErrorCode::kResources, "this process has ended");
}

core::Result<void> DiskView::make_folder(const std::filesystem::path& path) {
  TROUPE_TRY(check());
  disk_.make_folder(path.string());
  return {};
}

core::Result<void> DiskView::write_file(const std::filesystem::path& path,
                                        std::string_view content) {
  TROUPE_TRY(check());
  return disk_.write(path.string(), content);
}

core::Result<void> DiskView::append(const std::filesystem::path& path, std::string_view content) {
  TROUPE_TRY(check(path.string(), content));
  return disk_.append(path.string(), content);
}

core::Result<void> DiskView::sync(const std::filesystem::path& path) {
  TROUPE_TRY(check());
  disk_.sync(path.string());
  return {};
}

core::Result<void> DiskView::cut(const std::filesystem::path& path, std::uint64_t bytes) {
  TROUPE_TRY(check());
  disk_.cut(path.string(), bytes);
  return {};
}

core::Result<void> DiskView::remove(const std::filesystem::path& path) {
  TROUPE_TRY(check());
  disk_.remove(path.string());
  return {};
}

core::Result<void> DiskView::commit(const std::string& from, const std::string& to) {
  TROUPE_TRY(check());
  disk_.commit(from, to);
  return {};
}

core::Result<std::vector<std::string>> DiskView::list(const std::filesystem::path& folder) {
  if (!process_.alive()) return core::fail(core::ErrorCode::kResources, "this process has ended");
  return disk_.files_in(folder.string());
}

}  // namespace troupe::sim
