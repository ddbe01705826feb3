// Data roles that begin anew with the experience log of the one before them, on a disk that can be
// full.
#pragma once

#include "actors/data/group_log.hpp"
#include "tests/unit/actors/data/data_stage.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::test {

using States = std::vector<std::string>;

// A disk that can be full, over the system's.
class CrampedDisk final : public store::Disk {
 public:
  bool full = false;

  bool exists(const std::filesystem::path& path) override { return disk_.exists(path); }
  core::Result<void> make_folder(const std::filesystem::path& path) override {
    return disk_.make_folder(path);
  }
  core::Result<void> write_file(const std::filesystem::path& path,
                                std::string_view content) override {
    return disk_.write_file(path, content);
  }
  core::Result<std::string> read_file(const std::filesystem::path& path) override {
    return disk_.read_file(path);
  }
  core::Result<void> append(const std::filesystem::path& path, std::string_view content) override {
    if (full) return core::fail(core::ErrorCode::kNoRoom, "no room for " + path.string());
    return disk_.append(path, content);
  }
  core::Result<void> sync(const std::filesystem::path& path) override { return disk_.sync(path); }
  core::Result<void> cut(const std::filesystem::path& path, std::uint64_t bytes) override {
    return disk_.cut(path, bytes);
  }
  core::Result<void> remove(const std::filesystem::path& path) override {
    return disk_.remove(path);
  }
  core::Result<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    return disk_.list(folder);
  }
  core::Result<std::uint64_t> size_of(const std::filesystem::path& path) override {
    return disk_.size_of(path);
  }

 private:
  store::Disk& disk_ = store::system_disk();
};

class LogStage : public ::testing::Test {
 protected:
  data::DataRoleOptions options() {
    data::DataRoleOptions options;
    options.samples = 2;
    options.rewards = {kRightOnce};
    options.log.folder = folder_.path();
    options.log.disk = &disk_;
    options.log.found = *data::read_log(store::StepLog(folder_.path(), disk_), 0);
    return options;
  }
  static std::vector<std::string> states(DataStage& stage, std::uint64_t update) {
    AwaitGroups await{update, {}};
    const auto statuses = stage.ask(std::move(await));
    std::vector<std::string> found;
    if (!statuses) return {statuses.error().message};
    for (const auto& group : statuses->groups)
      found.emplace_back(experience::state_name(group.state));
    return found;
  }
  std::filesystem::path file(std::uint64_t step) {
    return folder_ / ("step_00000" + std::to_string(step) + ".log");
  }

  troupe::test::TempFolder folder_;
  CrampedDisk disk_;
};

}  // namespace troupe::actors::test
