// Files as two texts: what is read, and what a crash leaves.
#include "tests/sim/world/sim_disk.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

core::Failure full_disk(const std::string& path) {
  return core::fail(core::ErrorCode::kDiskFull, "cannot write " + path + ": no space is left");
}

bool is_under(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
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
  for (const std::string& folder : folders_) {
    if (!folder.starts_with(path + "/")) continue;
    std::string name = folder.substr(path.size() + 1);
    if (name.find('/') == name.npos) names.push_back(std::move(name));
  }
  return names;
}

void SimDisk::lose_unsynced() {
  std::erase_if(files_, [](const auto& entry) { return !entry.second.there; });
  for (auto& [path, file] : files_)
    file.now = file.synced;
}

core::Result<void> DiskView::check() const {
  if (process_.alive()) return {};
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

core::Result<void> DiskView::append(const std::string& path, std::string_view content) {
  TROUPE_TRY(check());
  return disk_.append(path, content);
}

}  // namespace troupe::sim
