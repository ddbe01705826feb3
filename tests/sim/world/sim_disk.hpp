// A disk in memory that outlives the processes: it can be full, and what was not synced is lost
// when its host crashes. A process sees it through a view, which refuses everything once the
// process has ended. Paths are compared as texts.
#pragma once

#include "runtime/store/disk.hpp"
#include "tests/sim/world/process.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::sim {

class SimDisk {
 public:
  struct File {
    std::string now;     // as a reader sees it
    std::string synced;  // as it is after a crash of the host
    bool there = false;  // after such a crash
  };

  bool exists(const std::string& path) const;
  core::Result<void> write(const std::string& path, std::string_view content);
  core::Result<void> append(const std::string& path, std::string_view content);
  std::string read(const std::string& path) const;
  void make_folder(const std::string& path) { folders_.insert(path); }
  void sync(const std::string& path);
  void cut(const std::string& path, std::size_t bytes);  // synced
  // Syncs all files under `from` and gives them, and the folder, another place.
  void commit(const std::string& from, const std::string& to);
  void remove(const std::string& path);                                // and all under it
  std::vector<std::string> folders_in(const std::string& path) const;  // names, sorted
  std::vector<std::string> files_in(const std::string& path) const;

  // Writes fail from now on, until there is room again.
  void set_full(bool full) { full_ = full; }
  // Nothing is there: the folder of another run.
  void clear() {
    files_.clear();
    folders_.clear();
  }
  // The host has crashed.
  void lose_unsynced();

  // The process that does the `writes`-th write from now on ends in the middle of it: `crash` kills
  // it at this moment of virtual time. Of what it adds to a file, one half is written. `torn`: that
  // half is synced.
  void crash_in(std::uint64_t writes, bool torn, std::function<void(const Process&)> crash) {
    writes_left_ = writes;
    torn_ = torn;
    crash_ = std::move(crash);
  }
  // True when this write, sync or removal is the one, or a later one of that process. It is not to
  // be done then.
  bool interrupts(const Process& process,
                  const std::string& path = {},
                  std::string_view added = {});

 private:
  std::map<std::string, File> files_;
  std::set<std::string> folders_;
  bool full_ = false, torn_ = false;
  std::uint64_t writes_left_ = 0;
  std::function<void(const Process&)> crash_;
  std::set<std::uint64_t> ended_;  // numbers of processes
};

// The disk as the roles of one process see it.
class DiskView final : public store::Disk {
 public:
  DiskView(SimDisk& disk, const Process& process) : disk_(disk), process_(process) {}
  bool exists(const std::filesystem::path& path) override { return disk_.exists(path.string()); }
  core::Result<void> make_folder(const std::filesystem::path& path) override;
  core::Result<void> write_file(const std::filesystem::path& path,
                                std::string_view content) override;
  core::Result<std::string> read_file(const std::filesystem::path& path) override {
    return disk_.read(path.string());
  }
  core::Result<void> append(const std::filesystem::path& path, std::string_view content) override;
  core::Result<void> sync(const std::filesystem::path& path) override;
  core::Result<void> cut(const std::filesystem::path& path, std::uint64_t bytes) override;
  core::Result<void> remove(const std::filesystem::path& path) override;
  core::Result<std::vector<std::string>> list(const std::filesystem::path& folder) override;
  core::Result<std::uint64_t> size_of(const std::filesystem::path& path) override {
    return disk_.read(path.string()).size();
  }
  // The folder `from` becomes `to`, whole and synced.
  core::Result<void> commit(const std::string& from, const std::string& to);
  SimDisk& disk() { return disk_; }
  bool works() const { return process_.alive(); }

 private:
  core::Result<void> check(const std::string& path = {}, std::string_view added = {}) const;
  SimDisk& disk_;
  const Process& process_;
};

}  // namespace troupe::sim
