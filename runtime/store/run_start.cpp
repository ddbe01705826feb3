// The three meanings of --resume.
#include "runtime/store/run_start.hpp"

#include "runtime/core/config_render.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_file.hpp"
#include "runtime/store/config_file.hpp"

#include <map>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;
using core::Result;
using core::TrainConfig;

// Refuses to go on with a run under another configuration.
Result<void> check_same(const RunFolder& folder, const TrainConfig& config) {
  TROUPE_TRY_ASSIGN(text, read_all(folder.config_file()));
  if (text.empty()) return {};
  TROUPE_TRY_ASSIGN(texts, parse_config_text(text, folder.config_file().string()));
  TROUPE_TRY_ASSIGN(method, core::config_method(texts, {}));
  core::ConfigBuilder before(method);
  TROUPE_TRY(before.set_all(texts));
  std::string differing;
  for (const auto& difference : core::config_differences(before.current(), config)) {
    if (core::config_key_may_change(difference.name)) continue;
    differing += (differing.empty() ? "" : ", ") + std::string(difference.name) + " was " +
                 difference.before + " and is " + difference.after;
  }
  if (differing.empty()) return {};
  return fail(ErrorCode::kConfig, "run folder " + folder.path().string() +
                                      " holds a run with another configuration: " + differing +
                                      "; choose another --run.path, or --resume off to start anew");
}

Result<void> find_newest(RunStart& start, const TrainConfig& config) {
  if (!start.folder.has_run()) return {};
  TROUPE_TRY(check_same(start.folder, config));
  const CheckpointStore checkpoints(start.folder.checkpoint_folder(), config.ckpt.max_num);
  TROUPE_TRY(checkpoints.clean());
  TROUPE_TRY_ASSIGN(found, checkpoints.latest_valid());
  for (const std::string& reason : found.rejected) {
    start.notes.push_back("passed over a checkpoint: " + reason);
  }
  if (!found.newest && !found.rejected.empty()) {
    return fail(ErrorCode::kData, "no checkpoint of " + start.folder.path().string() +
                                      " is valid: " + found.rejected.front() +
                                      "; --resume off starts anew");
  }
  start.checkpoint = std::move(found.newest);
  start.notes.push_back(start.checkpoint ? "going on from " + start.checkpoint->folder.string()
                                         : "no checkpoint yet in " + start.folder.path().string() +
                                               ": starting from the model");
  return {};
}

Result<void> take_given(RunStart& start, const TrainConfig& config) {
  TROUPE_TRY_ASSIGN(checkpoint, verify_checkpoint(config.resume));
  std::error_code error;
  const bool own = fs::equivalent(fs::absolute(config.resume).parent_path(),
                                  start.folder.checkpoint_folder(), error);
  if (start.folder.has_run()) {
    if (!own) {
      return fail(ErrorCode::kConfig, "run folder " + start.folder.path().string() +
                                          " holds a run already; choose another --run.path for the "
                                          "branch that starts at " +
                                          config.resume);
    }
    TROUPE_TRY(check_same(start.folder, config));
    const CheckpointStore checkpoints(start.folder.checkpoint_folder(), config.ckpt.max_num);
    TROUPE_TRY(checkpoints.clean());
    TROUPE_TRY_ASSIGN(steps, checkpoints.steps());
    if (!steps.empty() && steps.back() > checkpoint.step) {
      return fail(ErrorCode::kConfig,
                  checkpoints.folder_of(steps.back()).string() + " is newer than --resume " +
                      config.resume + "; move newer checkpoints away or choose another --run.path");
    }
  }
  start.notes.push_back("going on from " + checkpoint.folder.string());
  start.checkpoint = std::move(checkpoint);
  return {};
}

}  // namespace

Result<RunStart> start_run(const TrainConfig& config,
                           const std::map<std::string, std::string, std::less<>>& origins) {
  std::vector<std::string> notes;
  if (config.resume == "off") {
    // Opened first: the lock tells whether somebody is at work there.
    bool has_run = false;
    {
      TROUPE_TRY_ASSIGN(old, RunFolder::open(config.run.path));
      has_run = old.has_run();
    }
    if (has_run) {
      TROUPE_TRY_ASSIGN(aside, set_aside(config.run.path));
      notes.push_back("the run that was in " + config.run.path + " is now in " + aside.string());
    }
  }
  TROUPE_TRY_ASSIGN(folder, RunFolder::open(config.run.path));
  RunStart start{std::move(folder), std::nullopt, std::move(notes)};
  if (config.resume == "auto") {
    TROUPE_TRY(find_newest(start, config));
  } else if (config.resume != "off") {
    TROUPE_TRY(take_given(start, config));
  }
  std::optional<std::uint64_t> step;
  if (start.checkpoint) step = start.checkpoint->step;
  TROUPE_TRY(start.folder.cut_back(step));
  TROUPE_TRY(replace_file(start.folder.config_file(), core::config_yaml(config, origins)));
  return start;
}

}  // namespace troupe::store
