// `troupe train METHOD CONFIG.yaml [--key v]`: reads the configuration and does the whole run.
#include "actors/controller/reward_board.hpp"
#include "actors/data/data_state.hpp"
#include "actors/data/group_log.hpp"
#include "actors/limits.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/cli/system_facts.hpp"
#include "apps/session/company_plane.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/kept_lanes.hpp"
#include "apps/session/loopback_plane.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_files.hpp"
#include "apps/session/run_inputs.hpp"
#include "apps/session/run_reporter.hpp"
#include "apps/session/run_session.hpp"
#include "apps/session/run_summary.hpp"
#include "apps/session/supervised_run.hpp"
#include "apps/session/wanted_roles.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/learn/trainers.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::app {
namespace {

// A run of `train ppo`, session after session: when the policy or the critic is lost, the next
// session resumes from the last checkpoint.
class Training {
 public:
  Training(config::TrainConfig config, config::Origins origins)
      : config_(std::move(config)), origins_(std::move(origins)), begin_(clock_.now()) {}

  core::Result<void> run() {
    for (std::uint64_t losses = 0;;) {
      const std::uint64_t done_before = done_;
      auto outcome = run_session();
      if (begun_ && !loopback() && wait_for_room(outcome)) continue;
      if (outcome || outcome.error().code != core::ErrorCode::kPeerLost || loopback()) {
        return outcome;
      }
      losses = done_ > done_before ? 1 : losses + 1;
      if (losses > actors::limits::kRestarts_max) return outcome;
      note(outcome.error().message + "; going on from the last checkpoint");
      config_.resume = "auto";
    }
  }

 private:
  bool loopback() const { return config_.cluster.transport == config::Transport::kLoopback; }

  // If a session ended because the disk is full, waits a while, says so the first time, and returns
  // true. False when that was not the cause, or when the user asks to stop.
  bool wait_for_room(const core::Result<void>& outcome) {
    const bool full = !outcome && outcome.error().code == core::ErrorCode::kDiskFull;
    if (!full) room_pause_ = actors::limits::kDiskPause_min;
    if (!full || stop_requested()) return false;
    if (room_pause_ == actors::limits::kDiskPause_min)
      note(outcome.error().message + "; the run goes on when there is room");
    const core::TimePoint end = clock_.now() + room_pause_;
    while (clock_.now() < end && !stop_requested())
      std::this_thread::sleep_for(actors::limits::kLookEvery);
    room_pause_ = std::min<core::Duration>(2 * room_pause_, actors::limits::kDiskPause_max);
    config_.resume = "auto";
    return true;
  }

  // Shows a note of the company through the current reporter; between two sessions on standard
  // error. Any thread.
  void note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (reporter_ != nullptr) return reporter_->on_note(text);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  void report_to(RunReporter* reporter) {
    const std::lock_guard lock(mutex_);
    reporter_ = reporter;
  }

  core::Result<void> run_session() {
    TROUPE_TRY_ASSIGN(inputs, load_inputs(config_, loopback()));
    TROUPE_TRY_ASSIGN(updates, updates_of_run(config_, inputs.prompts->size()));
    if (!contents_) {
      TROUPE_TRY_ASSIGN(contents, contents_of(config_));
      contents_.emplace(std::move(contents));
    }
    TROUPE_TRY_ASSIGN(start, start_run(config_, origins_, *contents_));
    if (!begun_) TROUPE_TRY(check_experience(start, *contents_));
    if (start.checkpoint && start.checkpoint->step >= updates) {
      return say_finished(*start.checkpoint, updates, "updates");
    }
    SessionParts parts;
    parts.plan = run_plan(config_, updates, inputs.evaluation ? inputs.evaluation->size() : 0);
    if (start.checkpoint) {
      parts.checkpoint = start.checkpoint->folder.string();
      parts.plan.first_update = done_ = start.checkpoint->step;
      parts.plan.evaluations_owed = 2 - evaluations_in(start.folder.metrics_file(), done_);
    }
    parts.plan.restarts = !loopback();
    parts.plan.failed = failed_;
    TROUPE_TRY_ASSIGN(logged, actors::read_log(start.folder.experience(), parts.plan.first_update));
    parts.plan.logged_until = logged.end();
    parts.plan.earlier_starts = actors::earlier_starts(logged, parts.plan.staleness_max);
    if (!begun_) TROUPE_TRY(restore_rewards(start.checkpoint, logged.sets));
    for (const auto& [number, set] : reward_sets_)
      parts.plan.earlier_sets.push_back(set);
    if (loopback()) TROUPE_TRY(check_none_attached(parts.plan));
    TROUPE_TRY_ASSIGN(files, RunFiles::open(start.folder));
    TROUPE_TRY_ASSIGN(reporter,
                      RunReporter::open(config_, start, updates, clock_, *contents_, inputs.notes));
    report_to(reporter.get());
    begun_ = true;
    parts.data = data_options(config_);
    parts.data.earlier_sets = parts.plan.earlier_sets;
    parts.data.log.folder = start.folder.experience_folder();
    parts.data.log.found = std::move(logged);
    parts.data.log.here = [&start] { return start.folder.check_here().has_value(); };
    if (inputs.evaluation) {
      TROUPE_TRY_SET(parts.data.evaluation_settings,
                     evaluation_settings(config_, *inputs.evaluation));
    }
    parts.prompts = std::move(inputs.prompts);
    parts.evaluation = std::move(inputs.evaluation);
    parts.sink = std::move(files);
    parts.listener = reporter.get();
    parts.roles_up = [&start, told = reporter.get()](const std::string& arithmetic) {
      return begin_in(arithmetic, start, *told);
    };
    parts.check_place = [&start] { return start.folder.check_here(); };
    auto ended = conduct(std::move(parts), inputs, updates, start.folder);
    const bool asked = !ended && ended.error().code == core::ErrorCode::kInterrupted;
    if (ended || asked) plane_.reset();  // dismisses the nodes while a reporter can show it
    report_to(nullptr);
    reward_sets_.merge(reporter->reward_sets());
    failed_ = reporter->failed_update();
    if (!ended && !asked) return ended;
    const auto phases = reporter->phases();
    const std::uint64_t done = reporter->done();
    reporter.reset();  // ends the live block before the table
    print_summary(start.folder, done, load_s_, phases);
    return ended;
  }

  // Restores the attached rewards of an earlier process: from the checkpoint, and from the
  // experience log those that came later.
  core::Result<void> restore_rewards(const std::optional<store::Checkpoint>& checkpoint,
                                     const std::vector<actors::SetRewards>& logged) {
    std::vector<actors::SetRewards> found;
    if (checkpoint) {
      TROUPE_TRY_ASSIGN(state, actors::read_state(checkpoint->folder));
      found = std::move(state.reward_sets);
    }
    for (const auto& set : logged) {
      if (found.empty() || set.set > found.back().set) found.push_back(set);
    }
    actors::RewardSets sets(data_options(config_).rewards);
    TROUPE_TRY(sets.restore(found));  // in order
    for (auto& set : found)
      reward_sets_.emplace(set.set, std::move(set));
    return {};
  }

  // Attached rewards come through the gateway, which a run in one process does not have.
  static core::Result<void> check_none_attached(const actors::RunPlan& plan) {
    const actors::RewardBoard board(plan.rewards, plan.earlier_sets);
    if (board.absent().empty()) return {};
    return core::fail(core::ErrorCode::kConfig,
                      "reward " + *board.absent().begin() +
                          " was attached to this run, and no reward can be attached with "
                          "--cluster.transport loopback; use --cluster.transport caf");
  }

  core::Result<void> conduct(SessionParts parts,
                             RunInputs& inputs,
                             std::uint64_t updates,
                             const store::RunFolder& folder) {
    if (!plane_ && loopback()) {
      if (const std::string gpus = devices_text(config_); !gpus.empty()) note(gpus);
      plane_ = std::make_unique<LoopbackPlane>(config_, updates, std::move(inputs.params),
                                               std::move(inputs.reward));
    } else if (!plane_) {
      TROUPE_TRY(open_company(updates, folder));
    }
    if (load_s_ == 0) load_s_ = std::chrono::duration<double>(clock_.now() - begin_).count();
    RunSession session(*plane_, std::move(parts));
    return session.run();
  }

  core::Result<void> open_company(std::uint64_t updates, const store::RunFolder& folder) {
    CompanyPlaneOptions options;
    options.config = config_;
    options.updates = updates;
    options.run_id = folder.generation().run_id();
    options.generation = folder.generation().number();
    options.run_folder = folder.path();
    options.cores = plan_cores(config_, static_cast<std::uint32_t>(usable_cores()));
    options.ours = [generation = folder.generation()] { return generation.check().has_value(); };
    options.contents = [this] { return contents_->get(); };
    options.note = [this](const std::string& text) { note(text); };
    note(options.cores.text);
    TROUPE_TRY_ASSIGN(company, CompanyPlane::open(std::move(options)));
    const std::string address = company->address();
    note("join with --join " + address + ", or --join " + folder.path().string() +
         " on this machine" + company->status_text());
    plane_ = std::move(company);
    const std::string missing = awaited_kinds(config_);
    if (!missing.empty()) {
      note("waiting for nodes that play " + missing + ": troupe node --join " + address +
           " --roles " + missing);
    }
    return {};
  }

  config::TrainConfig config_;
  const config::Origins origins_;
  const core::SteadyClock clock_;
  const core::TimePoint begin_;
  double load_s_ = 0;
  std::uint64_t done_ = 0;  // updates in the checkpoint that the last session began with
  std::map<std::uint64_t, actors::SetRewards> reward_sets_;  // beyond the run's own, by number
  bool begun_ = false;                                       // a session has begun
  core::Duration room_pause_ = actors::limits::kDiskPause_min;
  actors::FailedUpdate failed_;  // of the last session
  std::mutex mutex_;
  RunReporter* reporter_ = nullptr;  // while there is one
  std::optional<Hashing> contents_;
  std::unique_ptr<ControlPlane> plane_;
};

core::Result<void> train(config::Methods method, Words words) {
  TROUPE_TRY_ASSIGN(builder, config::read(run_table(), words, method));
  TROUPE_TRY(keep_lanes(builder));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  TROUPE_TRY(learn::find_trainers());  // before anything is written
  limit_stop(
      static_cast<unsigned>(config.run.grace_s),
      "stopped at the end of run.grace_s; the same command goes on from the newest checkpoint "
      "and what was sampled since");
  if (method == config::kPpo) return Training(std::move(config), builder.origins()).run();
  return run_supervised(std::move(config), builder.origins());
}

struct Page {
  std::string_view method;
  std::string_view summary;
  std::string_view text;
};

constexpr std::string_view kPairRows =
    "Rows: a better and a worse answer (data.chosen_key, data.rejected_key) to one prompt\n"
    "(data.prompt_key), as text or as lists of chat messages; without data.prompt_key both "
    "columns\n"
    "hold the whole dialogue. The prompt is computed once for both.\n";

constexpr Page kPages[] = {
    {"ppo", "reinforcement learning from rewards",
     "Trains a policy from rewards: samples groups of responses, scores them, and learns from "
     "them.\n"},
    {"sft", "supervised fine-tuning on answers",
     "Trains on the tokens of answers. Rows: a prompt (data.input_key) and an answer\n"
     "(data.output_key), or a dialogue: a list of chat messages (data.input_key, or a column\n"
     "`messages`), a ShareGPT or an Alpaca row. The last answer is learned, or every assistant\n"
     "turn with --data.multiturn true.\n"},
    {"pretrain", "next token over all of a text",
     "Trains on every token of plain texts. Rows: a text (data.input_key).\n"},
    {"rm", "a reward model from pairs",
     "Trains a model with a score head so that better answers score higher: the loss is\n"
     "-log sigmoid(better - worse - margin).\n"},
    {"dpo", "direct preference optimisation",
     "Trains a policy on preferences against a frozen reference (ref.model_name_or_path, else the\n"
     "model as it was).\n"},
    {"ipo", "identity preference optimisation",
     "As dpo, with a squared loss that does not push pairs apart without end.\n"},
    {"cdpo", "dpo with labels that may be wrong",
     "As dpo, where a share of the pairs (dpo.label_smoothing) is taken to be labelled the wrong\n"
     "way round.\n"},
    {"kto", "Kahneman-Tversky optimisation on rated answers",
     "Trains a policy on single answers that are good or bad, against a frozen reference.\n"
     "Rows: a prompt (data.input_key), an answer (data.output_key) and whether it is good\n"
     "(data.label_key: true or false).\n"},
};

bool pairs(std::string_view method) {
  return method == "rm" || method == "dpo" || method == "ipo" || method == "cdpo";
}

// The beginning of `troupe train [METHOD] --help`: how it is called, what the method does, which
// rows it reads. `method` empty: a line for each method.
std::string train_help(std::string_view method) {
  const std::string word(method.empty() ? "METHOD" : method);
  std::string text =
      "usage: troupe train " + word + " CONFIG.yaml [CONFIG.yaml ...] [--key v | key=v ...]\n\n";
  for (const Page& page : kPages) {
    if (method.empty()) {
      std::string name(page.method);
      name.resize(10, ' ');
      text += "  " + name + std::string(page.summary) + "\n";
    } else if (page.method == method) {
      text += page.text;
      if (pairs(method)) text += kPairRows;
    }
  }
  text +=
      "\nFiles are read from left to right, flags come last; an interrupted run goes on where it "
      "stopped\n"
      "(--resume auto). A run writes into its folder (--run.path): docs/run_folder.md.\n";
  if (method.empty()) text += "\nKeys: troupe train METHOD --help\n";
  return text;
}

void print_help(config::Methods method, const std::string& section_name) {
  // `--help rollout` describes the keys of one section.
  const std::string section = method == config::kNoMethod
                                  ? ""
                                  : config::section_help(run_table(), section_name, 100, method);
  if (!section.empty()) {
    std::fputs(section.c_str(), stdout);
    return;
  }
  std::fputs(train_help(config::method_names(method)).c_str(), stdout);
  if (method == config::kNoMethod) return;
  std::fputs("\nKeys by section (--help SECTION describes them):\n", stdout);
  std::fputs(config::overview(100, method).c_str(), stdout);
}

// Advice for a word that is no method. Other programs have a command for each variant of
// reinforcement learning, such as grpo; here a variant is a setting of `train ppo`.
std::string advice_for(const std::string& word) {
  std::vector<std::string_view> words(std::begin(config::kMethodNames),
                                      std::end(config::kMethodNames));
  std::map<std::string_view, std::string> settings;
  for (const char* key : {"algo.advantage.estimator", "algo.objective"}) {
    for (const core::Choice& choice : run_table().find(key)->words) {
      for (const std::string_view kind : {choice.name, choice.alias}) {
        if (kind.empty()) continue;
        words.push_back(kind);
        settings.emplace(kind, std::string("--") + key + " " + std::string(choice.name));
      }
    }
  }
  const std::string near(core::nearest_word(word, words));
  const auto found = settings.find(near);
  if (config::method_named(near) == config::kNoMethod && found != settings.end()) {
    return (near == word ? "it" : near) + " is `train ppo` with " + found->second +
           ", docs/recipes.md";
  }
  if (!near.empty()) return "did you mean `train " + near + "`?";
  return "choose one of " + config::method_names(config::kAllMethods);
}

}  // namespace

core::Result<void> run_train(Words words) {
  const config::Methods method = words.empty() ? config::kNoMethod : config::method_named(words[0]);
  if (words.empty() || wants_help(words)) {
    print_help(method, words.empty() ? "" : words.back());
    return {};
  }
  if (method == config::kNoMethod) {
    return core::fail(core::ErrorCode::kConfig,
                      "there is no `train " + words[0] + "`; " + advice_for(words[0]));
  }
  return train(method, words.subspan(1));
}

}  // namespace troupe::app
