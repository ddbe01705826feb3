// The rules between configuration keys.
#include "runtime/config/builder.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/group_bytes.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe::config {
namespace {

// What makes no sense beside other keys: at which key, when, and what to do about it.
struct KeyRule {
  Methods methods;                           // that are held to it
  std::string_view key;                      // empty where none of several is set
  std::string (*why)(const TrainConfig& c);  // empty when nothing is wrong
};

#define RULE(methods, key, wrong, ...)                     \
  {methods, key, [](const TrainConfig& c) -> std::string { \
     return (wrong) ? joined(__VA_ARGS__) : std::string(); \
   }},

bool names_evaluation(std::string_view figure) {
  return figure.starts_with("eval/") || figure.starts_with("-eval/");
}

// Tensor cores add in an order of their own: the log-probs of policy, reference and engines agree
// only where all of them use these.
bool uses_tensor_cores(const TrainConfig& c) {
  return c.actor.param_dtype == ParamDtype::kBf16Compute;
}
constexpr std::string_view kOneArithmetic =
    "with actor.param_dtype bf16-compute policy, reference and engines compute on GPUs; give cuda, "
    "or --actor.param_dtype bf16";

// Of rule, Python file and server: how many are set.
int sources_of(const TrainConfig& c) {
  return !c.reward.rule.empty() + !c.reward.python.empty() + !c.reward.http.empty();
}
std::size_t rewards_of(const TrainConfig& c) {
  return c.reward.model_name_or_path.size() + (sources_of(c) > 0 ? 1 : 0);
}

bool one_process(const TrainConfig& c) {
  return c.cluster.transport == Transport::kLoopback;
}

constexpr KeyRule kRules[] = {
#include "runtime/config/rules.def"
};

#undef RULE

class Check {
 public:
  Check(const TrainConfig& config, const Origins& origins) : config_(config), origins_(origins) {}

  void needed(const Table& table) {
    for (const Row& row : table.rows()) {
      if (!row.needed || !row.is_read_by(config_.method) || row.yaml(config_) != "\"\"") continue;
      add(refuse(row.name, " is not set (", row.help, "): give --", row.name,
                 " or put it in the YAML file"));
    }
  }

  // Of each key what is wrong first is told.
  void own() {
    std::string_view told = "-";
    for (const KeyRule& rule : kRules) {
      if ((rule.methods & config_.method) == 0 || rule.key == told) continue;
      const std::string why = rule.why(config_);
      if (why.empty()) continue;
      refuse_key(rule.key, why);
      told = rule.key;
    }
  }

  void handed(std::span<const Rule> rules) {
    for (const Rule& rule : rules) {
      if (const auto refusal = rule(config_)) return refuse_key(refusal->key, refusal->why);
    }
  }

  void refuse_key(std::string_view key, std::string_view why) {
    const auto origin = origins_.find(key);  // "demo.yaml:4: " for a key that was set
    add(refuse(origin == origins_.end() ? "" : origin->second + ": ", key, key.empty() ? "" : ": ",
               why));
  }

  core::Result<void> result() const { return wrong_.result(); }

 private:
  void add(const core::Failure& failure) { wrong_.add(failure.error); }

  const TrainConfig& config_;
  const Origins& origins_;
  core::ErrorList wrong_;
};

// One way of a group: `rest` bytes beside its samples, `token` bytes for each token of a sample.
struct Way {
  const char* what;
  std::uint64_t rest, token;
};

bool fits(const TrainConfig& c,
          Check& check,
          const Way& way,
          std::string_view samples_key,
          std::uint64_t samples) {
  const auto tokens = static_cast<std::uint64_t>(c.rollout.max_new_tokens);
  const std::uint64_t left = core::frame_left(way.rest),
                      one = core::kSampleRest_bytes + tokens * way.token;
  if (samples * one <= left) return true;
  if (left < samples * (core::kSampleRest_bytes + way.token)) {
    check.refuse_key(way.rest > 0 ? "data.prompt_max_len" : samples_key,
                     joined("a group of ", samples,
                            " samples does not fit the one frame that it travels in; give less"));
    return false;
  }
  check.refuse_key(
      "rollout.max_new_tokens",
      joined(samples, " samples of ", tokens, " tokens, ", way.what, ", are ", samples * one,
             " bytes (", way.token, " a token), and a group travels in one frame, which has ", left,
             " for them: give at most --rollout.max_new_tokens ",
             (left / samples - core::kSampleRest_bytes) / way.token, " or --", samples_key, " ",
             left / one));
  return false;
}

void check_frames(const TrainConfig& c, Check& check) {
  const bool masses = c.rollout.top_p < 1 || c.rollout.top_k > 0 || c.rollout.min_p > 0;
  const Way delivered{
      "as they are delivered", 0,
      core::delivered_bytes(1, core::kTokenText_bytes, masses) - core::kSampleRest_bytes};
  const Way learned{"as they are learned from",
                    static_cast<std::uint64_t>(c.data.prompt_max_len) * 4,
                    core::experience_bytes(1, c.has_reference()) - core::kSampleRest_bytes};
  const auto samples = static_cast<std::uint64_t>(c.rollout.n_samples_per_prompt);
  for (const Way& way : {delivered, learned}) {
    if (!fits(c, check, way, "rollout.n_samples_per_prompt", samples)) return;
  }
  if (c.eval.dataset.empty()) return;
  fits(c, check, delivered, "eval.n_samples_per_prompt",
       static_cast<std::uint64_t>(c.eval.n_samples_per_prompt));
}

}  // namespace

core::Result<void> check(const TrainConfig& config, const Table& table, const Origins& origins) {
  Check checked(config, origins);
  checked.needed(table);
  checked.own();
  if (config.method == kPpo) {
    checked.handed(table.rules());
    check_frames(config, checked);
  }
  return checked.result();
}

}  // namespace troupe::config
