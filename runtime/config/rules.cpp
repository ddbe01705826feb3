// Checks the rules between configuration keys.
#include "runtime/config/builder.hpp"
#include "runtime/config/environments.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/config/reward_list.hpp"
#include "runtime/config/reward_names.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/group_bytes.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {
namespace {

// A rule of rules.def: the key to change, and a function that says why it must be.
struct KeyRule {
  Methods methods;                      // the methods that the rule applies to
  std::string_view key;                 // empty if the message names several keys
  Saying (*why)(const TrainConfig& c);  // empty if nothing is wrong
};

#define RULE(methods, key, wrong, ...) \
  {methods, key,                       \
   [](const TrainConfig& c) -> Saying { return (wrong) ? said(__VA_ARGS__) : Saying(); }},

// The figure of an evaluation that the key names; empty: it names none.
std::string_view best_figure(std::string_view key) {
  if (key.starts_with('-') || key.starts_with('+')) key.remove_prefix(1);
  return key.starts_with("eval/") ? key.substr(5) : std::string_view();
}

// Figures of a named set, or of a source, are known once there was an evaluation.
bool names_no_figure(std::string_view key) {
  constexpr std::string_view kFigures[] = {"reward",          "reward_model",   "greedy",
                                           "missing",         "greedy_missing", "truncated_rate",
                                           "response_length", "length_pearson", "length_spearman"};
  const std::string_view figure = best_figure(key);
  return !figure.empty() && figure.find('/') == std::string_view::npos &&
         !figure.starts_with("pass@") && !figure.starts_with("maj@") &&
         std::ranges::count(kFigures, figure) == 0;
}

// user:password@ before the first / of an address.
bool holds_password(std::string_view address) {
  const auto scheme = address.find("://");
  if (scheme == std::string_view::npos || address.starts_with("sqlite")) return false;
  const std::string_view rest = address.substr(scheme + 3);
  return rest.substr(0, rest.find('/')).find('@') != std::string_view::npos;
}

// Tensor cores add in their own order. The log-probs of policy, reference and engines therefore
// agree only if all of them use tensor cores.
bool uses_tensor_cores(const TrainConfig& c) {
  return c.actor.param_dtype == ParamDtype::kBf16Compute;
}
bool has_reference(const TrainConfig& c) {
  return c.algo.kl.init_coef != 0 || c.algo.objective == "online_dpo";
}
constexpr std::string_view kOneArithmetic =
    "with actor.param_dtype bf16-compute policy, reference and engines compute on GPUs; give cuda, "
    "or --actor.param_dtype bf16";

// How many of rule, Python file and server are set.
int sources_of(const TrainConfig& c) {
  return !c.reward.rule.empty() + !c.reward.python.empty() + !c.reward.http.empty();
}
// Whether a text is HOST:PORT.
bool listens_well(const Text& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == Text::npos || colon == 0) return false;
  return core::number_of<std::uint16_t>(std::string_view(address).substr(colon + 1)).has_value();
}
bool on_loopback(const Text& address) {
  return address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}
std::size_t rewards_of(const TrainConfig& c) {
  return c.reward.model_name_or_path.size() + c.reward.list.size() + (sources_of(c) > 0 ? 1 : 0) +
         (c.reward.process.model_name_or_path.empty() ? 0 : 1) + (c.reward.judge.empty() ? 0 : 1) +
         (c.reward.feedback || environments_of(c) > 0 ? 1 : 0);
}
// Why a file or a folder may not name a reward, and what to do; empty if it may.
Saying misnamed_file(const Text& file) {
  const std::string why = file.empty() ? std::string() : own_word_fault(name_of_file(file));
  return why.empty() ? Saying() : said(why, kThen, "rename the file ", file);
}
Saying misnamed_folder(const Texts& folders) {
  for (const Text& folder : folders) {
    const std::string why = folder.empty() ? std::string() : own_word_fault(name_of_folder(folder));
    if (!why.empty())
      return said(why, kThen, "rename the folder ", folder, ", or give a link to it");
  }
  return {};
}
bool names_secret(const Text& place) {
  return (place.starts_with("env:") && place.size() > 4) ||
         (place.starts_with("file:") && place.size() > 5);
}

bool has_evaluation(const TrainConfig& c) {
  return !c.eval.dataset.empty() || !c.eval.sets.empty();
}
constexpr std::string_view kNeedsEvaluation = "needs --eval.dataset or --eval.sets";
Saying eval_sets_fault(const TrainConfig& c) {
  const auto sets = eval_sets(c);
  return sets ? Saying() : saying_of(sets.error());
}
Saying reward_list_fault(const TrainConfig& c) {
  const auto rewards = listed_rewards(c);
  return rewards ? Saying() : saying_of(rewards.error());
}
// Whether one of the keys that name a single reward stands next to the list.
bool beside_list(const TrainConfig& c) {
  return sources_of(c) > 0 || !c.reward.model_name_or_path.empty() || !c.reward.judge.empty() ||
         !c.reward.process.model_name_or_path.empty();
}
bool lists_workers(const TrainConfig& c) {
  const auto rewards = listed_rewards(c);
  return rewards && std::ranges::any_of(*rewards, [](const ListedReward& one) {
           const auto& own = one.config.reward;
           return !own.python.empty() || own.rule == "math" || own.rule == "code";
         });
}
// Whether a key of reward.process is set that needs the model; feedback on turns reads one of them.
bool sets_process(const TrainConfig& c) {
  const auto& own = c.reward.process;
  const auto& usual = default_config().reward.process;
  return own.reduce != usual.reduce || (own.baseline != usual.baseline && !c.reward.feedback) ||
         !own.placeholder_token.empty() || !own.reward_tokens.empty() ||
         !own.step_separator.empty();
}
bool sets_code(const TrainConfig& c) {
  const auto& own = c.reward.code;
  const auto& usual = default_config().reward.code;
  return own.timeout_s != usual.timeout_s || own.memory_mb != usual.memory_mb ||
         own.score != usual.score;
}
bool repeats(Texts texts) {
  std::ranges::sort(texts);
  return std::ranges::adjacent_find(texts) != texts.end();
}

std::size_t teachers_of(const TrainConfig& c) {
  return c.teacher.model_name_or_path.size() + c.teacher.http.size();
}
bool misnames_domains(const TrainConfig& c) {
  const std::size_t named = c.teacher.domains.size();
  return named == 0 ? teachers_of(c) > 1 : named != teachers_of(c);
}
// The first duplicate domain, or an `other` that is not last; "" if there is none.
std::string_view repeated_domain(const Texts& domains) {
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const bool early = domains[i] == "other" && i + 1 < domains.size();
    if (early || std::ranges::count(domains, domains[i]) > 1) return domains[i];
  }
  return {};
}
constexpr std::string_view kTeacherAlone =
    "is read only with a teacher: give --teacher.model_name_or_path or --teacher.http";

// The size of a group with this many samples, if all have their maximum length.
std::uint64_t group_bytes(const TrainConfig& c, std::int64_t samples) {
  const auto count = static_cast<std::uint64_t>(samples);
  const std::uint64_t tokens = count * static_cast<std::uint64_t>(c.rollout.max_new_tokens);
  return core::group_bytes(static_cast<std::uint64_t>(c.data.prompt_max_len), count, tokens,
                           tokens * core::kTokenText_bytes, teachers_of(c) > 0 ? 3 : 2);
}
Saying too_long(const TrainConfig& c, std::int64_t samples) {
  return said(samples, " samples of ", c.rollout.max_new_tokens, " tokens are a group of ",
              group_bytes(c, samples), " bytes", kThen, "a group may have at most ",
              core::limits::kGroup_bytes_max,
              ": give fewer, or a smaller --rollout.max_new_tokens");
}

// The divisors of a number that lie nearest to another, for advice: "1, 2, 4, 8 or 16".
std::string divisors_near(std::int64_t number, std::int64_t wanted) {
  constexpr std::size_t kShown = 8;
  std::vector<std::int64_t> all;
  for (std::int64_t one = 1; one * one <= number; ++one) {
    if (number % one != 0) continue;
    all.push_back(one);
    if (one * one != number) all.push_back(number / one);
  }
  std::ranges::sort(all, {}, [wanted](std::int64_t one) { return std::abs(one - wanted); });
  if (all.size() > kShown) all.resize(kShown);
  std::ranges::sort(all);
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 < all.size() ? ", " : " or ") + std::to_string(all[i]);
  return text;
}

bool one_process(const TrainConfig& c) {
  return c.cluster.transport == Transport::kLoopback;
}

// ---- ranks (docs/adr/0026)

constexpr std::string_view kOneRank =
    "a run in one process has one rank of a role; give 1, or leave --cluster.transport caf";

std::int64_t samples_of_step(const TrainConfig& c) {
  if (c.method != kPpo) return c.train.batch_size;
  return c.samples_per_update() / std::max<std::int64_t>(c.mini_batches(), 1);
}
Saying too_few_samples(const TrainConfig& c, std::int64_t ranks) {
  return said(ranks, " ranks, but an optimiser step has only ", samples_of_step(c), " samples",
              kThen, "give fewer, or a larger --train.batch_size");
}
Saying too_few_lanes(const TrainConfig& c, std::int64_t ranks) {
  return said(ranks, " ranks, but train.lanes is ", c.train.lanes,
              " and a rank computes at least one lane", kThen,
              "give fewer, or start a run with --train.lanes ", ranks);
}

// A GPU that two ranks of this host would share; null when there is none. Ranks elsewhere have
// devices of their own hosts, which are unknown here.
const Device* shared_device(const Devices& devices, const TrainConfig& c) {
  const std::int64_t all = std::ssize(devices), here = c.cluster.local_ranks;
  const auto last = devices.begin() + (here > 0 ? std::min(here, all) : all);
  const auto twice = std::find_if(devices.begin(), last, [&](const Device& device) {
    return device.gpu && std::count(devices.begin(), last, device) > 1;
  });
  return twice == last ? nullptr : &*twice;
}

// One device for all ranks, or, with GPUs, one for each.
bool fits_ranks(const Devices& devices, std::int64_t ranks, const TrainConfig& c) {
  const bool gpus = std::ranges::any_of(devices, &Device::gpu);
  return shared_device(devices, c) == nullptr && std::ssize(devices) <= ranks &&
         (!gpus || std::ssize(devices) == ranks);
}
Saying misfit_of(const Devices& devices,
                 std::int64_t ranks,
                 const TrainConfig& c,
                 std::string_view section) {
  if (const Device* const twice = shared_device(devices, c))
    return said("names ", twice->text(), " twice", kThen, "two ranks of one host share no GPU");
  return said("names ", devices.size(), " device(s) for ", ranks,
              " rank(s), and ranks share no GPU", kThen, "name one for each, or change --", section,
              ".ranks");
}

constexpr KeyRule kRules[] = {
#include "runtime/config/rules.def"
};

#undef RULE

}  // namespace

Saying broken_rule(const TrainConfig& config, std::string_view prefix) {
  for (const KeyRule& rule : kRules) {
    if ((rule.methods & config.method) == 0) continue;
    if (!rule.key.empty() && !rule.key.starts_with(prefix)) continue;
    const Saying why = rule.why(config);
    if (!why.empty()) return rule.key.empty() ? why : said(rule.key, ": ", why);
  }
  return {};
}

core::Result<void> check(const TrainConfig& config, const Table& table, const Origins& origins) {
  core::ErrorList wrong;
  const auto refuse_key = [&](std::string_view key, const Saying& why) {
    const auto origin = origins.find(key);  // such as "demo.yaml:4", if the key was set
    wrong.add(refuse(origin == origins.end() ? "" : origin->second + ": ", key,
                     key.empty() ? "" : ": ", why)
                  .error);
  };
  for (const Row& row : table.rows()) {
    if (!row.needed || !row.is_read_by(config.method) || row.yaml(config) != "\"\"") continue;
    wrong.add(refuse(row.name, " is not set (", row.help, "): give --", row.name,
                     " or put it in the YAML file")
                  .error);
  }
  std::string_view told = "-";  // only the first broken rule of each key is reported
  for (const KeyRule& rule : kRules) {
    if ((rule.methods & config.method) == 0 || rule.key == told) continue;
    const Saying why = rule.why(config);
    if (why.empty()) continue;
    refuse_key(rule.key, why);
    told = rule.key;
  }
  for (const Rule& rule : table.rules()) {
    const auto refusal = rule(config);
    if (!refusal) continue;
    refuse_key(refusal->key, {refusal->why, refusal->advice});
    break;
  }
  return wrong.result();
}

}  // namespace troupe::config
