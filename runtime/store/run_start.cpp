#include "runtime/store/run_start.hpp"

#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/run_gaps.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using config::TrainConfig;

// Keys that set the length of a run. They may change on a resume if no result depends on them.
bool is_length(std::string_view key) {
  return key == "train.max_steps" || key == "train.num_episodes";
}

// A key that nothing reads may have had another default when the run began.
bool is_read(std::string_view key, const TrainConfig& config) {
  return key != "algo.dynamic_filtering_range" || config.algo.dynamic_filtering_enable;
}

// The end of the error message about a changed configuration: what the user can do.
std::string way_out(const RunFolder& folder,
                    const TrainConfig& config,
                    const std::vector<config::Difference>& differing) {
  const CheckpointStore checkpoints(folder.checkpoint_folder(), config.ckpt.max_num);
  const auto newest = checkpoints.latest_listed();
  if (!newest || !*newest) return "give them as they were, or choose another --run.path";
  const bool longer = std::all_of(differing.begin(), differing.end(),
                                  [](const auto& one) { return is_length(one.name); });
  return std::string(longer ? "the learning rate follows from the length of the run, so a longer "
                              "one is another run: "
                            : "give them as they were, or start a branch: ") +
         "the same command with " + branch_flags(checkpoints.folder_of(**newest), folder.path()) +
         (longer ? " goes on from there with the new schedule" : " goes on from there");
}

// The configuration that the folder's run had last; nothing when there is none.
Result<std::optional<TrainConfig>> recorded(const RunFolder& folder) {
  TROUPE_TRY_ASSIGN(text, read_all(folder.config_file()));
  if (text.empty()) return std::optional<TrainConfig>();
  TROUPE_TRY_ASSIGN(texts, config::read_yaml(text, folder.config_file().string()));
  TROUPE_TRY_ASSIGN(method, config::method_of(texts));
  config::Builder before(config::keys(), method);
  TROUPE_TRY(before.set_run(texts));
  return std::optional<TrainConfig>(before.current());
}

// Refuses to resume a run with a configuration that would change its results.
Result<void> check_same(const RunFolder& folder, const TrainConfig& config, bool may_grow) {
  TROUPE_TRY_ASSIGN(before, recorded(folder));
  if (!before) return {};
  std::string names;
  std::vector<config::Difference> differing;
  for (auto& difference : config::differences(*before, config)) {
    if (config::may_change(difference.name)) continue;
    if (is_length(difference.name) && may_grow) continue;
    if (!is_read(difference.name, config)) continue;
    names += (names.empty() ? "" : ", ") + std::string(difference.name) + " was " +
             difference.before + " and is " + difference.after;
    differing.push_back(std::move(difference));
  }
  if (differing.empty()) return {};
  return fail(
      ErrorCode::kConfig,
      "run folder " + folder.path().string() + " holds a run with another configuration: " + names,
      way_out(folder, config, differing));
}

// --resume auto: takes the newest valid checkpoint of the run folder, if it holds a run.
Result<void> find_newest(RunStart& start, const TrainConfig& config, bool may_grow) {
  if (!start.folder.has_run()) {
    // What was sampled for the first update is of use to the same run alone.
    if (!check_same(start.folder, config, may_grow)) TROUPE_TRY(start.folder.drop_experience());
    return {};
  }
  TROUPE_TRY(check_same(start.folder, config, may_grow));
  const CheckpointStore checkpoints(start.folder.checkpoint_folder(), config.ckpt.max_num);
  TROUPE_TRY(checkpoints.clean());
  TROUPE_TRY_ASSIGN(found, checkpoints.latest_valid());
  for (const std::string& reason : found.rejected)
    start.notes.push_back("passed over a checkpoint: " + reason);
  if (!found.newest && !found.rejected.empty()) {
    return fail(
        ErrorCode::kData,
        "no checkpoint of " + start.folder.path().string() + " is valid: " + found.rejected.front(),
        "--resume off starts anew");
  }
  start.checkpoint = std::move(found.newest);
  start.notes.push_back(start.checkpoint ? "going on from " + start.checkpoint->folder.string()
                                         : "no checkpoint yet in " + start.folder.path().string() +
                                               ": starting from the model");
  return {};
}

// Whether the folder holds the branch from the checkpoint that --resume names, of which nothing is
// in a checkpoint of its own yet.
bool holds_branch(const RunFolder& folder, const TrainConfig& config, bool may_grow) {
  const auto own = CheckpointStore(folder.checkpoint_folder(), config.ckpt.max_num).steps();
  const auto before = recorded(folder);
  if (!own || !own->empty() || !before || !*before) return false;
  std::error_code error;
  return fs::equivalent((*before)->resume, config.resume, error) &&
         check_same(folder, config, may_grow).has_value();
}

// What --resume PATH takes.
struct Given {
  bool others = false;   // the checkpoint belongs to another run folder
  bool goes_on = false;  // with a branch that has begun
};

// Takes the checkpoint that --resume names.
Result<Given> take_given(RunStart& start, const TrainConfig& config, bool may_grow) {
  TROUPE_TRY_ASSIGN(checkpoint, verify_checkpoint(config.resume));
  std::error_code error;
  const bool own = fs::equivalent(fs::absolute(config.resume).parent_path(),
                                  start.folder.checkpoint_folder(), error);
  const bool goes_on = !own && holds_branch(start.folder, config, may_grow);
  if (start.folder.has_run() && !goes_on) {
    if (!own) {
      return fail(ErrorCode::kConfig,
                  "run folder " + start.folder.path().string() + " holds a run already",
                  "choose another --run.path for the branch that starts at " + config.resume);
    }
    TROUPE_TRY(check_same(start.folder, config, may_grow));
    const CheckpointStore checkpoints(start.folder.checkpoint_folder(), config.ckpt.max_num);
    TROUPE_TRY(checkpoints.clean());
    TROUPE_TRY_ASSIGN(newest, checkpoints.latest_listed());
    if (newest && *newest > checkpoint.step) {
      return fail(
          ErrorCode::kConfig,
          checkpoints.folder_of(*newest).string() + " is newer than --resume " + config.resume,
          "move newer checkpoints away or choose another --run.path");
    }
  }
  start.notes.push_back("going on from " + checkpoint.folder.string());
  start.checkpoint = std::move(checkpoint);
  return Given{!own, goes_on};
}

// The first update of the run that made the checkpoint, less one, where its manifest says it.
std::optional<std::uint64_t> first_in(const Checkpoint& checkpoint) {
  const auto state = nlohmann::json::parse(checkpoint.state_json, nullptr, false);
  if (!state.is_object() || !state.contains("begins_after") ||
      !state["begins_after"].is_number_unsigned()) {
    return std::nullopt;
  }
  return state["begins_after"].get<std::uint64_t>();
}

}  // namespace

std::string branch_flags(const fs::path& checkpoint, const fs::path& run_path) {
  return "--resume " + core::shell_word(checkpoint.string()) + " --run.path " +
         core::shell_word(free_sibling(run_path, "-").string());
}

Result<RunStart> start_run(const TrainConfig& config,
                           const config::Origins& origins,
                           bool may_grow,
                           const ResumeCheck& check) {
  std::vector<std::string> notes;
  if (config.resume == "off") {
    // Open it first: taking its lock fails if another process uses the folder.
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
  RunStart start{std::move(folder), std::nullopt, 0, std::move(notes)};
  Given given;
  if (config.resume == "auto") {
    TROUPE_TRY(find_newest(start, config, may_grow));
  } else if (config.resume != "off") {
    TROUPE_TRY_SET(given, take_given(start, config, may_grow));
  }
  const bool branch = given.others;
  if ((branch && !given.goes_on) || config.resume == "off")
    TROUPE_TRY(start.folder.drop_experience());
  if (check && start.checkpoint) {
    TROUPE_TRY_ASSIGN(seen, check(*start.checkpoint, branch));
    start.notes.insert(start.notes.end(), seen.begin(), seen.end());
  }
  std::optional<std::uint64_t> step;
  if (start.checkpoint) step = start.checkpoint->step;
  TROUPE_TRY(start.folder.cut_back(step));
  if (start.checkpoint) {
    start.first = branch ? step : first_in(*start.checkpoint);
    TROUPE_TRY_ASSIGN(gaps,
                      gaps_of(start.folder, start.first, *step, config.method == config::kPpo));
    start.notes.insert(start.notes.end(), gaps.begin(), gaps.end());
  }
  TROUPE_TRY(start.folder.kept()->put(start.folder.config_file(),
                                      config::resolved_yaml(config, origins), true));
  return start;
}

}  // namespace troupe::store
