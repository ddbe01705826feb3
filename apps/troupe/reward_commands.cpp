// `troupe attach reward`, `detach reward`, `re-weight reward`: change the rewards of a running run.
// An attached reward runs in the command's process, or in a background one, until it is detached.
#include "actors/company/limits.hpp"
#include "actors/formula/reward_formula.hpp"
#include "actors/reward/queued_reward.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/node/node_process.hpp"
#include "apps/session/reward_flags.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/scorer_roles.hpp"
#include "apps/troupe/ask_company.hpp"
#include "apps/troupe/background.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/rejoining.hpp"
#include "kernels/ops.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/limits.hpp"
#include "runtime/config/reward_names.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/core/texts.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <mutex>

namespace troupe::app {
namespace {

struct AttachOptions {
  session::JoinFlags join;
  std::string name, model;
  session::RewardFlags source;
  std::string normalize = "none", input_key = "input", log, formula;
  std::string device = "cpu";  // where `model` computes
  bool chat = false, background = false;
  double weight = 1;
  session::GuestFlags guest;

  bool computes() const { return !model.empty() || source.has_process(); }
};

bool is_environment(cli::Words words) {
  return !words.empty() && words[0] == "environment";
}

// `troupe attach --help`: what there is to attach, each with flags of its own. False: not asked
// for.
bool show_kinds(const std::string& command,
                const char* reward,
                const char* environment,
                cli::Words words) {
  if (words.empty() || words[0] == "reward" || !cli::wants_help(words)) return false;
  std::printf(
      "troupe %s reward       %s\ntroupe %s environment  %s\n\n"
      "Each shows its flags with --help.\n",
      command.c_str(), reward, command.c_str(), environment);
  return true;
}

// Checks that the words begin with the kind `reward`, and drops it.
Result<cli::Words> after_kind(const char* command, cli::Words words) {
  if (!words.empty() && words[0] == "reward") return words.subspan(1);
  if (cli::wants_help(words)) return words;
  return fail(ErrorCode::kConfig,
              std::string("there is no `") + command + " " +
                  (words.empty() ? std::string("...") : words[0]) + "`",
              std::string("use `troupe ") + command + " reward`" +
                  (command == std::string("re-weight")
                       ? ""
                       : std::string(" or `troupe ") + command + " environment`"));
}

// Reads the flags of `troupe COMMAND reward`: those for joining, and `own`. False: help was shown.
Result<bool> read_flags(const char* command,
                        std::string_view title,
                        const std::vector<cli::Flag>& own,
                        AttachOptions& options,
                        cli::Words words) {
  std::vector<cli::Flag> flags = options.join.flags();
  flags.insert(flags.end(), own.begin(), own.end());
  TROUPE_TRY_ASSIGN(rest, after_kind(command, words));
  TROUPE_TRY_ASSIGN(outcome, cli::parse_flags(title, flags, rest));
  return outcome == cli::FlagsOutcome::kRun;
}

Result<void> check_name(const AttachOptions& options) {
  if (!options.name.empty()) return {};
  return fail(ErrorCode::kConfig, "--name is not set", "give the reward a name");
}

// Checks the name and flags of a reward that this process brings.
Result<void> check_new_name(const AttachOptions& options) {
  TROUPE_TRY(check_name(options));
  const std::string why = config::attached_name_fault(options.name);
  if (why.empty()) return {};
  return fail(ErrorCode::kConfig, "--name '" + options.name + "': " + why);
}

// Refuses a malformed formula before the run is asked, which knows whether it fits its rewards.
Result<void> check_formula(const AttachOptions& options) {
  const auto formula = actors::formula::RewardFormula::parse(options.formula);
  if (formula) return {};
  return fail(ErrorCode::kConfig, "--formula: " + formula.error().message);
}

// The source of scores that the flags name. `team`: computes the scores of --model.
Result<std::unique_ptr<actors::reward::RewardCalls>> calls_of(const AttachOptions& options,
                                                              core::TeamRunner& team) {
  const int given = options.source.count() + !options.model.empty() + options.source.has_process();
  if (given != 1) {
    return fail(
        ErrorCode::kConfig,
        "give exactly one of --python FILE, --rule exact|last_number|regex|math|code, --http URL, "
        "--judge URL, --model FOLDER, --process-model FOLDER");
  }
  if (options.normalize != "none" && options.normalize != "stored") {
    return fail(ErrorCode::kConfig, "--normalize: '" + options.normalize + "'",
                "expected none or stored");
  }
  config::TrainConfig config = options.source.process_config("steps");
  if (options.normalize == "stored") config.reward.normalize = config::Normalize::kStored;
  config.data.apply_chat_template = options.chat;
  config.data.input_key = options.input_key;
  if (!options.model.empty()) {
    TROUPE_TRY_ASSIGN(source, session::make_model_reward(config, options.model, team));
    return actors::reward::make_queued_reward(std::move(source));
  }
  if (options.source.has_process()) {
    TROUPE_TRY_ASSIGN(source, session::make_process_reward(config, team));
    return actors::reward::make_queued_reward(std::move(source));
  }
  return options.source.calls();
}

// Lines of a process that has not attached its reward yet. What the run says to that is told
// instead of what led to it.
class HeldLines {
 public:
  void put(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (open_) return cli::say(line);
    lines_.push_back(line);
  }
  // Prints the lines that were held, and from now on prints each line at once.
  void release() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    for (const std::string& line : lines_)
      cli::say(line);
    lines_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
  bool open_ = false;
};

// Why the run does not take the reward's role in.
core::Error refusal(const AttachOptions& options, const core::Error& error) {
  if (error.code != ErrorCode::kInvalidArgument) return error;
  const core::Error why = error.within("the run does not take reward '" + options.name + "' in");
  if (!why.advice().empty()) return why;
  return why.advising("choose another --name, or detach the reward that has it");
}

// Joins the company once, with the reward as a role of this process.
Result<session::NodeEnd> stay(const AttachOptions& options,
                              core::TeamRunner& team,
                              const std::shared_ptr<actors::node::LogBacklog>& log,
                              const SayRunning& running,
                              Rejoining& rejoining) {
  TROUPE_TRY_ASSIGN(reward, calls_of(options, team));
  TROUPE_TRY_ASSIGN(target, rejoining.find());
  async::IoThreads io(1);
  session::NodeSelf self;
  self.name = "node/reward-" + options.name + "-" + std::to_string(::getpid());
  self.kinds = {"attach"};
  async::DeviceThread thread("reward", &kernels::flush_denormals);
  std::unique_ptr<cluster::RoleHost> role;
  HeldLines lines;
  session::NodeCalls calls;
  calls.note = [&lines](const std::string& line) { lines.put(line); };
  calls.log = log;
  calls.once_in = [&](const session::NodeGuest& guest) -> Result<bool> {
    rejoining.joined(guest);
    auto factory = session::reward_factory(std::move(reward), options.source.deadline());
    const std::string name = "reward/" + options.name;
    auto hosted = guest.host(name, std::move(factory), &thread);
    if (!hosted) return fail(refusal(options, hosted.error()));
    role = std::move(*hosted);
    actors::AttachReward request{options.name, name, options.weight, options.formula};
    TROUPE_TRY_ASSIGN(changed, ask_from(guest, std::move(request), async::limits::kCallDeadline));
    lines.release();
    running("reward " + options.name + " scores from update " +
            std::to_string(changed.from_update + 1) + " on (set " + std::to_string(changed.set) +
            ")");
    rejoining.settled();
    return true;
  };
  calls.before_end = [&](const session::NodeGuest& guest) { guest.stop(role); };
  auto end =
      session::live_through_gateway(io, target, rejoining.bound(std::move(self), target), calls);
  if (end || end.error().code != ErrorCode::kInvalidArgument) lines.release();
  thread.close();
  return end;
}

// Keeps a reward attached until it is detached, the run ends or a signal comes. Once the run has
// accepted the reward, joins the run again when it was lost. Calls `running` each time that the
// reward is attached.
Result<void> attach(const AttachOptions& options, const SayRunning& running) {
  // Rewards other than models do not use the team.
  std::unique_ptr<core::TeamRunner> team = std::make_unique<core::SerialTeam>();
  if (options.computes()) TROUPE_TRY_SET(team, cli::make_team({options.device, 0}));
  const std::string who = "reward " + options.name;
  Rejoining rejoining({who, options.join, !options.guest.any_run, false, options.guest.wait_s,
                       "groups that needed " + who + " are sampled again",
                       who + " is needed no more: it was detached, or the run has ended"});
  const auto log = overheard();
  for (;;) {
    auto end = stay(options, *team, log, running, rejoining);
    if (auto over = rejoining.next(end)) return *over;
  }
}

std::string detach_command(const AttachOptions& options) {
  return "`troupe detach reward --join " + core::shell_word(options.join.join) + " --name " +
         options.name + "`";
}

Result<void> attach_here(const AttachOptions& options) {
  return attach(options, [&](const std::string& words) {
    cli::say(words);
    cli::say("it scores in this process until " + detach_command(options) +
             ", the end of the run or Ctrl-C; --background gives the terminal back");
  });
}

// The log file of --background: --log, else next to the logs of the run's nodes if --join names a
// run folder, else in the current folder.
std::filesystem::path log_of(const AttachOptions& options) {
  if (!options.log.empty()) return options.log;
  const std::string name = "attach-" + options.name + ".log";
  const std::filesystem::path nodes = std::filesystem::path(options.join.join) / "nodes";
  std::error_code error;
  return std::filesystem::is_directory(nodes, error) ? nodes / name : std::filesystem::path(name);
}

Result<void> attach_behind(const AttachOptions& options) {
  const std::filesystem::path log = log_of(options);
  const auto work = [&](const SayRunning& running) {
    return attach(options, [&](const std::string& words) {
      cli::say(words);
      running(words);
    });
  };
  TROUPE_TRY_ASSIGN(start, start_in_background(log, work));
  cli::say(start.words);
  cli::say("it scores in process " + std::to_string(start.pid) + " until " +
           detach_command(options) + " or the end of the run; its log is " + log.string());
  return {};
}

}  // namespace

Result<void> run_attach(cli::Words words) {
  if (is_environment(words)) return run_attach_environment(words.subspan(1));
  if (show_kinds("attach", "adds a reward to a live run", "takes episodes of a live run", words)) {
    return {};
  }
  AttachOptions options;
  std::vector<cli::Flag> own = {
      {"--name", &options.name, "name of the reward in the run"},
      {"--weight", &options.weight, "factor of its score"},
      {"--formula", &options.formula, "how the run's rewards become one score from then on"},
      {"--model", &options.model, "folder of a learned reward model"},
      {"--device", &options.device,
       "of --model: where it computes, on all cores of the cpu, or on cuda or cuda:N (GPU N)"},
      {"--normalize", &options.normalize,
       "of --model: none, or stored (mean and deviation of its config.json)"},
      {"--apply-chat-template", &options.chat, "of --model: the run's prompts are chats"},
      {"--input-key", &options.input_key, "of --model with chats: column that holds the prompt"},
      {"--deadline-s", &options.source.config.reward.deadline_s,
       "seconds for the scores of one group", false, 0.001, 86400},
      {"--background", &options.background,
       "return once the reward is attached, which then runs in the background"},
      {"--log", &options.log, "log of --background; default: attach-NAME.log in RUN/nodes or ./"}};
  options.source.add_sources_to(own);
  options.source.add_process_to(
      own,
      "of --process-model: steps (each score at its step's last token; the "
      "default), or one score: last, min, mean, product");
  options.guest.add_to(own);
  TROUPE_TRY_ASSIGN(runs, read_flags("attach",
                                     "troupe attach reward: adds a reward to a live run; it "
                                     "scores in this process until it is detached, the run ends or "
                                     "Ctrl-C, or in the background with --background",
                                     own, options, words));
  if (!runs) return {};
  TROUPE_TRY(check_new_name(options));
  TROUPE_TRY(check_formula(options));
  if (!std::isfinite(options.weight) || options.weight == 0)
    return fail(ErrorCode::kConfig, "--weight: expected a number other than 0");
  if (!options.computes() && options.device != "cpu") {
    return fail(ErrorCode::kConfig, "--device is read with --model and --process-model",
                "leave it out");
  }
  TROUPE_TRY(options.source.check());
  TROUPE_TRY(options.source.check_process(true));
  if (options.background) return attach_behind(options);
  if (!options.log.empty())
    return fail(ErrorCode::kConfig, "--log is read with --background", "leave it out");
  return attach_here(options);
}

Result<void> run_detach(cli::Words words) {
  if (is_environment(words)) return run_detach_environment(words.subspan(1));
  if (show_kinds("detach", "takes a reward out of a run, once its last group is scored",
                 "takes an attached environment out of a run", words)) {
    return {};
  }
  AttachOptions options;
  TROUPE_TRY_ASSIGN(runs,
                    read_flags("detach",
                               "troupe detach reward: takes a reward out of a run, once the "
                               "last group that needs it is scored",
                               {{"--name", &options.name, "name of the reward"}}, options, words));
  if (!runs) return {};
  TROUPE_TRY(check_name(options));
  TROUPE_TRY_ASSIGN(changed, ask_company(options.join, actors::DetachReward{options.name},
                                         actors::company::limits::kSpawnDeadline));
  cli::say("reward " + options.name + " scores no longer from update " +
           std::to_string(changed.from_update + 1) + " on");
  return {};
}

Result<void> run_reweight(cli::Words words) {
  AttachOptions options;
  options.weight = 0;  // not given
  TROUPE_TRY_ASSIGN(
      runs,
      read_flags("re-weight",
                 "troupe re-weight reward: changes the weight of a reward, or how the rewards "
                 "become one score",
                 {{"--name", &options.name, "name of the reward"},
                  {"--weight", &options.weight, "new factor of its score"},
                  {"--formula", &options.formula,
                   "sum, min, product, gate, mean_minus_std and domain over the rewards' names; "
                   "rest: the weighted sum of those not named"}},
                 options, words));
  if (!runs) return {};
  if (options.formula.empty()) TROUPE_TRY(check_name(options));
  TROUPE_TRY(check_formula(options));
  if (options.name.empty() != (options.weight == 0)) {
    return fail(ErrorCode::kConfig, "--name and --weight belong together",
                "the weight is a number other than 0");
  }
  actors::ReweightReward request{options.name, options.name.empty() ? 1 : options.weight,
                                 options.formula};
  TROUPE_TRY_ASSIGN(changed,
                    ask_company(options.join, std::move(request), async::limits::kCallDeadline));
  const std::string from = " from update " + std::to_string(changed.from_update + 1) + " on";
  if (!options.name.empty())
    cli::say("reward " + options.name + " weighs " + core::printed("%g", options.weight) + from);
  if (!options.formula.empty()) cli::say("the rewards are combined by " + options.formula + from);
  return {};
}

}  // namespace troupe::app
