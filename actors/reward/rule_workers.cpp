#include "actors/reward/rule_workers.hpp"

#include "actors/reward/code_worker_source.hpp"
#include "actors/reward/math_packages_list.hpp"
#include "actors/reward/math_worker_source.hpp"
#include "actors/reward/python_reward.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/core/crc32c.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/store/troupe_home.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace troupe::actors::reward {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kInstall{10};

// The time for a sample that may run `seconds`, with a margin to start and end it.
core::Duration sample_time(double seconds) {
  return std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(seconds + 2));
}

std::string key_of_list() {
  const std::string_view list = kMathPackages;
  return core::printed("%08x", core::crc32c(list.data(), list.size(), 0));
}

std::string last_lines(const fs::path& file) {
  constexpr std::size_t kShown_bytes = 600;
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  std::string all = text.str();
  while (!all.empty() && all.back() == '\n')
    all.pop_back();
  if (all.size() > kShown_bytes) all = "..." + all.substr(all.size() - kShown_bytes);
  return all;
}

core::Result<void> install(const fs::path& folder) {
  const fs::path list = folder.string() + ".txt", log = folder.string() + ".log";
  const fs::path fresh = folder.string() + ".new";
  std::error_code error;
  fs::remove_all(fresh, error);
  std::ofstream(list) << kMathPackages;
  core::OwnedFd out(::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  if (out.get() < 0) {
    return core::fail(ErrorCode::kConfig, "reward.rule math: cannot write " + log.string());
  }
  core::ChildSpec spec;
  spec.words = {"python3",
                "-m",
                "pip",
                "install",
                "--no-deps",
                "--target",
                fresh.string(),
                "--disable-pip-version-check",
                "--progress-bar",
                "off",
                "--no-cache-dir",
                "--only-binary",
                ":all:",
                "-r",
                list.string()};
  spec.descriptors = {{out.get(), 1}, {out.get(), 2}};
  TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("pip", std::move(spec)));
  const auto status = child.wait(kInstall);
  if (!status || *status != 0) {
    return core::fail(ErrorCode::kConfig,
                      "reward.rule math: pip could not install the packages of its list " +
                          list.string() + " (" +
                          (status ? core::how_it_ended(*status) : "it took longer than 10 min") +
                          "): " + last_lines(log),
                      "give the python3 of the PATH pip and a way to PyPI (PIP_INDEX_URL names a "
                      "mirror), or copy " +
                          folder.string() + " from a machine that has it");
  }
  fs::rename(fresh, folder, error);
  if (!error) return {};
  return core::fail(ErrorCode::kConfig,
                    "reward.rule math: cannot rename " + fresh.string() + ": " + error.message());
}

}  // namespace

bool in_workers(const std::string& rule) {
  return rule == "math" || rule == "code";
}

core::Result<fs::path> math_packages(const std::function<void(const std::string&)>& say) {
  const fs::path home = store::troupe_home();
  if (home.empty()) {
    return core::fail(
        ErrorCode::kConfig,
        "reward.rule math: neither TROUPE_HOME nor HOME names a folder for its packages",
        "set TROUPE_HOME");
  }
  const fs::path folder = home / "packages" / ("math-" + key_of_list());
  std::error_code error;
  if (fs::is_directory(folder, error)) return folder;
  fs::create_directories(folder.parent_path(), error);
  const fs::path lock = folder.string() + ".lock";
  const core::OwnedFd held(::open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (held.get() < 0) {
    return core::fail(ErrorCode::kConfig,
                      "reward.rule math: cannot write in " + folder.parent_path().string(),
                      "set TROUPE_HOME to a folder that can be written");
  }
  ::flock(held.get(), LOCK_EX);
  if (fs::is_directory(folder, error)) return folder;  // by another process meanwhile
  if (say) say("installing the packages of reward.rule math, once, in " + folder.string());
  TROUPE_TRY(install(folder));
  return folder;
}

core::Result<std::unique_ptr<RewardCalls>> make_math_reward(
    std::size_t workers, const std::function<void(const std::string&)>& say, double seconds) {
  TROUPE_TRY_ASSIGN(folder, math_packages(say));
  const nlohmann::json settings = {{"packages", folder.string()}, {"seconds", seconds}};
  WorkerPool pool;
  pool.name = "math";
  pool.where = "rule math";
  pool.command = {"python3", "-c", kMathWorkerSource, settings.dump(), "3"};
  pool.workers = workers;
  pool.sample_time = sample_time(4 * seconds);  // as long as rule_math.py waits
  return make_worker_reward(std::move(pool));
}

core::Result<std::unique_ptr<RewardCalls>> make_code_reward(const CodeRewardOptions& options) {
  const nlohmann::json settings = {
      {"timeout_s", options.timeout_s}, {"memory_mb", options.memory_mb}, {"score", options.score}};
  WorkerPool pool;
  pool.name = "code";
  pool.where = "rule code";
  pool.command = {"python3", "-c", kCodeWorkerSource, settings.dump(), "3"};
  pool.workers = options.workers;
  pool.sample_time = sample_time(options.timeout_s);
  return make_worker_reward(std::move(pool));
}

}  // namespace troupe::actors::reward
