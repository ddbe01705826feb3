#include "apps/troupe/init/init_recipe.hpp"

#include "apps/cli/system_facts.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "runtime/config/recipe_text.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/plan/plan.hpp"
#include "runtime/plan/remedies.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::app {
namespace {

constexpr std::int64_t kResponse_tokens = 256;  // of ppo, where the model's context allows it
constexpr std::int64_t kPairs_tokens = 2;       // a pair is two answers in one micro-batch

std::int64_t rounded_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}
std::int64_t power_below(std::int64_t value) {
  std::int64_t power = 1;
  while (power * 2 <= value)
    power *= 2;
  return power;
}

// How the labels of a data set are compared with answers.
std::string rule_for(const std::vector<std::string>& labels) {
  if (labels.empty()) return "exact";
  const auto all = [&](auto holds) { return std::ranges::all_of(labels, holds); };
  if (all([](const std::string& one) { return core::number_of<double>(one).has_value(); }))
    return "last_number";
  if (std::ranges::any_of(labels, [](const std::string& one) {
        return one.find('\\') != one.npos || one.find("####") != one.npos ||
               one.find('^') != one.npos;
      }))
    return "math";
  return "exact";
}

class Maker {
 public:
  Maker(const config::Table& table,
        const InitRequest& request,
        const InitFacts& facts,
        const config::Builder& given)
      : table_(table), request_(request), facts_(facts), given_(given), builder_(given) {}

  InitRecipe make() {
    names();
    columns();
    lengths();
    batches();
    if (ppo()) rewards();
    machine();
    InitRecipe out;
    if (const auto whole = builder_.finish(); !whole) {
      for (const core::Error& one : core::single_errors(whole.error()))
        out.missing.push_back(one.message);
    }
    out.yaml = text(out.missing);
    return out;
  }

 private:
  config::Methods method() const { return builder_.current().method; }
  bool ppo() const { return method() == config::kPpo; }
  bool is_given(const std::string& key) const { return given_.origins().contains(key); }

  // Sets a key unless the user did, or says why it is as it is where it has the user's value.
  void set(const std::string& key, const std::string& value, const std::string& remark) {
    const config::Row* const row = table_.find(key);
    if (row == nullptr || !row->is_read_by(method()) || is_given(key)) return;
    const auto done = builder_.set({key, {value}, row->is_list(), "troupe init"});
    TROUPE_CHECK(done.has_value(), "a value that was found fits its key");
    remarks_[key] = remark;
  }
  // A key that a user may want, as a comment.
  void offer(const std::string& key, const std::string& value, const std::string& remark) {
    const config::Row* const row = table_.find(key);
    if (row == nullptr || !row->is_read_by(method()) || builder_.origins().contains(key)) return;
    offered_[key] = {value, remark};
  }

  void names() {
    if (request_.model.empty()) {
      offer("actor.model_name_or_path", "\"FOLDER\"", "needed: the model to train");
    } else {
      const model::ModelSpec& spec = facts_.model->spec;
      set("actor.model_name_or_path", request_.model,
          core::printed("%s, %.0f million parameters, a context of %lld tokens",
                        spec.architecture.c_str(),
                        static_cast<double>(spec.parameter_count()) / 1e6,
                        static_cast<long long>(spec.context)));
    }
    const std::string key = ppo() ? "data.prompt_dataset" : "data.dataset";
    if (request_.data.empty()) {
      offer(key, "\"FILE\"", "needed: the rows to train on");
    } else {
      set(key, request_.data,
          (facts_.rows->all ? std::to_string(facts_.rows->rows) + " rows: "
                            : "more than " + std::to_string(facts_.rows->rows) + " rows: ") +
              facts_.rows->words);
    }
    set("run.path", "runs/" + request_.word, "metrics, checkpoints and the model stand here");
    offer("eval.dataset", "\"FILE\"", "held-out rows, evaluated before and after");
    if (!request_.estimator.empty())
      set("algo.advantage.estimator", request_.estimator, "this makes it " + request_.word);
    if (method() == config::kDistill)
      offer("teacher.model_name_or_path", "[\"FOLDER\"]", "needed: the model to learn from");
  }

  void columns() {
    if (!facts_.rows) return;
    const data::NamedColumns& name = facts_.rows->to_name;
    const bool pairs = (method() & config::kPairs) != 0;
    if (!name.prompt.empty())
      set(pairs ? "data.prompt_key" : "data.input_key", name.prompt, "the column of the prompt");
    if (!name.answer.empty()) set("data.output_key", name.answer, "the column of the answer");
    if (!name.chosen.empty()) set("data.chosen_key", name.chosen, "the better answer");
    if (!name.rejected.empty()) set("data.rejected_key", name.rejected, "the worse answer");
    if (!name.label.empty()) set("data.label_key", name.label, "true where the answer is good");
    if (ppo() && !facts_.rows->label.empty())
      set("data.label_key", facts_.rows->label, "the expected answer, for the reward");
    if (facts_.rows->text_prompt && facts_.model && facts_.model->has_template)
      set("data.apply_chat_template", "true", "prompts go through the model's chat template");
  }

  void lengths() {
    if (!facts_.model) return;
    const std::int64_t context = facts_.model->spec.context;
    const std::int64_t seen = facts_.model->row_tokens;
    // A chat template adds some tokens, and later rows may be longer.
    const std::int64_t wanted = rounded_up(seen + seen / 4 + 32, 64);
    const std::string found = "the longest row that was looked at has " + std::to_string(seen) +
                              " tokens; the model's context is " + std::to_string(context);
    if (!ppo()) {
      const std::int64_t longest = std::min(seen > 0 ? wanted : std::int64_t{2048}, context);
      set("data.max_len", std::to_string(longest), found);
      micro_batch(longest * ((method() & config::kPairs) != 0 ? kPairs_tokens : 1));
    } else {
      const std::int64_t response = std::max<std::int64_t>(
          1, std::min({kResponse_tokens, builder_.current().rollout.max_new_tokens, context / 2}));
      set("rollout.max_new_tokens", std::to_string(response), "the longest response");
      const std::int64_t room = context - builder_.current().rollout.max_new_tokens;
      const std::int64_t prompt = std::min(seen > 0 ? wanted : std::int64_t{1024}, room);
      if (prompt < 1) return;  // keys that were given leave no room; the check says so
      set("data.prompt_max_len", std::to_string(prompt), found);
      micro_batch(prompt + builder_.current().rollout.max_new_tokens);
    }
    set("data.drop_too_long", "true", "longer rows are left out and counted; false: an error");
  }

  void micro_batch(std::int64_t rows) {
    const std::int64_t least = builder_.current().train.micro_tokens_max;
    set("train.micro_tokens_max", std::to_string(std::max(least, rounded_up(rows, 64))),
        "rows of one micro-batch; lower needs less memory, the result is the same");
  }

  // A step must not need more rows than there are; small data sets get several steps a pass.
  void batches() {
    const std::int64_t rows =
        facts_.rows && facts_.rows->all ? static_cast<std::int64_t>(facts_.rows->rows) : 1'000'000;
    const auto batch = [rows](std::int64_t most) {
      return std::to_string(std::min(most, power_below(std::max<std::int64_t>(rows / 4, 1))));
    };
    if (ppo()) {
      set("rollout.batch_size", batch(32), "prompts of an update");
      set("rollout.n_samples_per_prompt", "8", "samples of a prompt, compared with each other");
      set("train.num_episodes", "1", "passes over the prompts");
    } else {
      set("train.batch_size", batch(64), "rows of an optimiser step");
      set("train.max_epochs", "1", "passes over the rows");
    }
    const config::Row* const rate = table_.find("actor.adam.lr");
    set("actor.adam.lr", rate->yaml(builder_.current()), "the first number to change");
    offer("train.max_steps", "10", "a short trial");
    offer("actor.lora.rank", "16", "adapters instead of all weights: less memory, a rate of 1e-4");
  }

  void rewards() {
    const auto& origins = given_.origins();
    const auto own = origins.lower_bound("reward.");
    if (own != origins.end() && own->first.starts_with("reward.")) return;
    if (!facts_.rows || facts_.rows->label.empty()) {
      offer("reward.python", "\"reward.py\"",
            "needed, or another key of reward: a file with a function, docs/write_a_reward.md");
      return;
    }
    set("reward.rule", rule_for(facts_.rows->labels),
        "how a response is compared with the expected answer; or reward.python for your own");
  }

  // Whether the run fits the memory that is there; settings that need less, if it does not.
  void machine() {
    set("train.threads", "0", "all of the " + std::to_string(facts_.machine.cores) + " cores");
    if (!facts_.model || facts_.machine.memory == 0) return;
    PlanFlags flags;
    flags.host_gb = static_cast<double>(facts_.machine.memory) / 1e9;
    for (int tries = 0; tries < 8; ++tries) {
      const auto whole = builder_.finish();
      if (!whole) return;
      const auto run = plan_facts(*whole, builder_.origins(), flags);
      const auto plan = run ? plan::plan_of(*run) : run.failure();
      if (!plan) return;
      fits_ = plan->fits();
      if (fits_ || !save_memory(*run, plan->shortfalls.front())) return;
    }
  }

  // Applies what makes a role fit; false: nothing does.
  bool save_memory(const plan::RunFacts& run, const plan::Shortfall& shortfall) {
    bool changed = false;
    for (const std::string& setting : plan::remedy(run, shortfall)) {
      const auto blank = setting.find(' ');
      const std::string key = setting.substr(2, blank == setting.npos ? blank : blank - 2);
      if (table_.find(key) == nullptr || is_given(key) || blank == setting.npos) continue;
      set(key, setting.substr(blank + 1), "so that it fits the memory that is free");
      changed = true;
    }
    if (changed) return true;
    if (is_given("actor.lora.rank") || remarks_.contains("actor.lora.rank")) return false;
    set("actor.lora.rank", "16", "adapters, since all weights do not fit the memory that is free");
    set("actor.adam.lr", "1e-4", "of adapters; all weights would want far less");
    return true;
  }

  std::string text(const std::vector<std::string>& missing) const {
    config::RecipeText out;
    const std::string file = request_.out.empty() ? "FILE" : request_.out;
    out.comment("`troupe train " + config::method_names(method()) +
                "`: a first configuration, made by `troupe init " + request_.word + "`.");
    out.comment("Machine: " + facts_.machine.processor + ", " +
                std::to_string(facts_.machine.cores) + " cores, " +
                cli::bytes_text(static_cast<std::uint64_t>(facts_.machine.memory)) +
                " of memory free" + (fits_ ? "." : ", too little for this run."));
    out.comment("Check it with `troupe config validate " + file + "` and `troupe plan " + file +
                "`, run it with `troupe train " + config::method_names(method()) + " " + file +
                "`. All other keys: `troupe train " + config::method_names(method()) +
                " --help`, `troupe config show " + file + "`.");
    for (const std::string& one : missing)
      out.comment("Still to do: " + one);
    out.blank();
    out.key("method", config::method_names(method()));
    for (const config::Row& row : table_.rows()) {
      if (row.name == "method") continue;
      if (builder_.origins().contains(row.name)) {
        const auto remark = remarks_.find(row.name);
        out.key(row.name, row.yaml(builder_.current()),
                remark == remarks_.end() ? "" : std::string_view(remark->second));
      } else if (const auto offered = offered_.find(row.name); offered != offered_.end()) {
        out.unset(row.name, offered->second.first, offered->second.second);
      }
    }
    return out.text();
  }

  const config::Table& table_;
  const InitRequest& request_;
  const InitFacts& facts_;
  const config::Builder& given_;
  config::Builder builder_;
  std::map<std::string, std::string> remarks_;
  std::map<std::string, std::pair<std::string, std::string>> offered_;  // value, remark
  bool fits_ = true;
};

}  // namespace

InitRecipe make_init_recipe(const config::Table& table,
                            const InitRequest& request,
                            const InitFacts& facts,
                            const config::Builder& given) {
  return Maker(table, request, facts, given).make();
}

}  // namespace troupe::app
