#include "apps/report/rollouts.hpp"

#include "apps/report/json_members.hpp"
#include "apps/report/line_reader.hpp"
#include "apps/report/metric_curves.hpp"
#include "apps/report/step_files.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace troupe::report {
namespace {

using nlohmann::ordered_json;

// Numbers as they are drawn; null for one that is not finite.
template <class Values>
ordered_json numbers(const Values& values) {
  ordered_json out = ordered_json::array();
  for (const auto value : values) {
    const auto number = static_cast<double>(value);
    out.push_back(std::isfinite(number) ? ordered_json(rounded(number)) : ordered_json());
  }
  return out;
}

// The part of an object with short values, as rewards and extra values are.
ordered_json small_object(const ordered_json& row, const char* key, Budget& budget) {
  ordered_json out = ordered_json::object();
  const auto found = row.find(key);
  if (found == row.end() || !found->is_object()) return out;
  for (const auto& [name, value] : found->items()) {
    const std::string shown = budget.take(name, 200);
    if (value.is_number() || value.is_boolean() || value.is_null()) {
      out[shown] = value;
    } else {
      out[shown] = budget.take(text_in(*found, name.c_str()), 500);
    }
    if (out.size() >= 64) break;
  }
  return out;
}

// The tokens that a group's rows were made of; null if they do not fit the rows.
const std::vector<SampleTokens>* tokens_for(const StepGroup& group, const TokenLog* log) {
  const auto* const tokens = log == nullptr ? nullptr : log->find(group.slot, group.attempt);
  if (tokens == nullptr || tokens->size() != group.rows.size()) return nullptr;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    if ((*tokens)[i].ids.size() != whole_number(group.rows[i], "tokens")) return nullptr;
  }
  return tokens;
}

// A step's groups as advantages are computed from them; nullopt if a row has no score or token.
std::optional<std::vector<experience::Group>> learned_from(const StepRollouts& step,
                                                           const TokenLog* log,
                                                           bool need_logprobs) {
  std::vector<experience::Group> out;
  for (const StepGroup& group : step.groups) {
    const auto* const tokens = tokens_for(group, log);
    if (need_logprobs && tokens == nullptr) return std::nullopt;
    experience::Group one;
    one.ticket.slot = static_cast<std::uint32_t>(group.slot);
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      const ordered_json& row = group.rows[i];
      const auto score = row.find("reward");
      const std::uint64_t count = whole_number(row, "tokens");
      if (score == row.end() || !score->is_number() || count == 0 || count > 1 << 24)
        return std::nullopt;
      if (row.contains("shares")) return std::nullopt;  // the page shows no paths
      experience::Trajectory sample;
      sample.episode = static_cast<std::uint32_t>(whole_number(row, "episode"));
      sample.tokens.resize(count);
      sample.score = score->get<double>();
      if (text_in(row, "finish_reason") == "length")
        sample.finish = experience::FinishReason::kLength;
      if (need_logprobs) {
        sample.behaviour = (*tokens)[i].logprobs;
        sample.reference = (*tokens)[i].reference;
        sample.teacher = (*tokens)[i].teacher;
      }
      one.samples.push_back(std::move(sample));
    }
    out.push_back(std::move(one));
  }
  return out;
}

class RolloutPicker {
 public:
  RolloutPicker(const std::filesystem::path& run,
                std::uint64_t samples_max,
                const ModelFolders& models,
                Budget& budget,
                Notes& notes)
      : run_(run),
        samples_max_(samples_max),
        models_(models),
        budget_(budget),
        notes_(notes),
        advantages_(Advantages::of_run(run / "resolved_config.yaml")) {}

  ordered_json pick() {
    const StepFiles rollouts = list_steps(run_ / "rollouts", ".jsonl");
    ordered_json out = {{"groups", ordered_json::array()},
                        {"files", rollouts.files.size()},
                        {"bytes", rollouts.bytes}};
    std::vector<std::uint64_t> steps;
    for (const auto& [step, file] : rollouts.files)
      steps.push_back(step);
    const std::uint64_t files = std::max<std::uint64_t>(readable(rollouts), 1);
    const std::uint64_t share = (samples_max_ + files - 1) / files;
    const std::uint64_t of_step = std::max<std::uint64_t>(share, limits::kReportStepSamples_min);
    for (const std::size_t place : spread_order(steps.size())) {
      if (samples_ >= samples_max_ || budget_.spent() || read_ >= files) break;
      add_step(steps[place], rollouts.files.at(steps[place]),
               std::min(of_step, samples_max_ - samples_), out["groups"]);
    }
    std::stable_sort(out["groups"].begin(), out["groups"].end(),
                     [](const auto& a, const auto& b) { return a["u"] < b["u"]; });
    out["steps"] = read_;
    out["samples"] = samples_;
    out["all"] = read_ == steps.size() && !left_out_;
    out["no_advantages"] = with_advantages_ > 0 ? "" : why_no_advantages();
    out["no_tokens"] = with_tokens_ > 0 ? "" : why_no_tokens();
    return out;
  }

 private:
  // How many of the files are read, at most.
  static std::uint64_t readable(const StepFiles& rollouts) {
    const std::uint64_t count = rollouts.files.size();
    const std::uint64_t each = rollouts.bytes / std::max<std::uint64_t>(count, 1) + 1;
    const std::uint64_t by_bytes = limits::kReportRollouts_bytes_max / each;
    return std::min(
        {count, std::max<std::uint64_t>(by_bytes, 2), std::uint64_t{limits::kReportSteps_max}});
  }

  void add_step(std::uint64_t step,
                const std::filesystem::path& file,
                std::uint64_t samples_max,
                ordered_json& groups) {
    ++read_;
    const StepRollouts rollouts = read_rollouts(file, notes_);
    if (rollouts.groups.empty()) return;
    const auto log = TokenLog::read(run_ / "experience" / file.filename().replace_extension(".log"),
                                    step, notes_);
    const TokenLog* const tokens = log ? &*log : nullptr;
    log_seen_ = log_seen_ || tokens != nullptr;
    std::optional<AdvantageTable> table;
    if (rollouts.whole && advantages_.why_not().empty()) {
      const auto learned = learned_from(rollouts, tokens, advantages_.need_logprobs());
      if (learned) table = advantages_.of(*learned);
    }
    const std::uint64_t each =
        std::max<std::uint64_t>(rollouts.samples / rollouts.groups.size(), 1);
    const std::uint64_t wanted = std::max<std::uint64_t>(samples_max / each, 1);
    const auto places = spread_places(rollouts.groups.size(), wanted);
    left_out_ = left_out_ || places.size() < rollouts.groups.size();
    std::uint64_t left = samples_max;
    for (const std::size_t place : places) {
      if (left == 0 || budget_.spent()) {
        left_out_ = true;
        break;
      }
      const StepGroup& group = rollouts.groups[place];
      groups.push_back(group_json(step, group, tokens_for(group, tokens),
                                  table ? &(*table)[place] : nullptr, left));
    }
  }

  ordered_json group_json(std::uint64_t step,
                          const StepGroup& group,
                          const std::vector<SampleTokens>* tokens,
                          const std::vector<std::vector<double>>* advantages,
                          std::uint64_t& left) {
    const ordered_json& first = group.rows.front();
    ordered_json samples = ordered_json::array();
    for (std::size_t i = 0; i < group.rows.size(); ++i) {
      if (left == 0) {
        left_out_ = true;
        break;
      }
      --left;
      ++samples_;
      samples.push_back(sample_json(group.rows[i], tokens == nullptr ? nullptr : &(*tokens)[i],
                                    advantages == nullptr ? nullptr : &(*advantages)[i]));
    }
    return {{"u", step},
            {"s", group.slot},
            {"a", group.attempt},
            {"id", whole_number(first, "prompt_id")},
            {"set", whole_number(first, "reward_set")},
            {"p", budget_.take(text_in(first, "prompt"))},
            {"l", budget_.take(text_in(first, "label"), 2000)},
            {"samples", std::move(samples)}};
  }

  ordered_json sample_json(const ordered_json& row,
                           const SampleTokens* tokens,
                           const std::vector<double>* advantages) {
    ordered_json out = {{"i", whole_number(row, "sample")},
                        {"y", budget_.take(text_in(row, "response"))},
                        {"n", whole_number(row, "tokens")},
                        {"r", nullptr},
                        {"parts", small_object(row, "rewards", budget_)},
                        {"f", budget_.take(text_in(row, "finish_reason"), 40)},
                        {"v0", whole_number(row, "version_min")},
                        {"v1", whole_number(row, "version_max")}};
    if (const auto reward = row.find("reward"); reward != row.end() && reward->is_number())
      out["r"] = *reward;
    if (ordered_json extra = small_object(row, "extra", budget_); !extra.empty())
      out["x"] = std::move(extra);
    const bool varies = advantages != nullptr && !advantages->empty() &&
                        std::any_of(advantages->begin(), advantages->end(),
                                    [&](double one) { return one != advantages->front(); });
    if (advantages != nullptr && !advantages->empty()) {
      out["adv"] = rounded(advantages->front());  // of the first token, if they differ
      ++with_advantages_;
    }
    if (tokens != nullptr && budget_.take_tokens(tokens->ids.size())) {
      if (auto texts = texts_of(tokens->ids)) {
        ordered_json details = {{"t", std::move(*texts)}, {"lp", numbers(tokens->logprobs)}};
        if (!tokens->reference.empty()) details["ref"] = numbers(tokens->reference);
        if (varies) details["adv"] = numbers(*advantages);
        out["tok"] = std::move(details);
        ++with_tokens_;
      }
    }
    return out;
  }

  std::optional<std::vector<std::string>> texts_of(const std::vector<std::int32_t>& ids) {
    if (!std::exchange(tokenizer_looked_for_, true)) tokenizer_ = TokenTexts::load(models_);
    if (!tokenizer_) return std::nullopt;
    auto texts = tokenizer_->of(ids);
    if (!texts) return std::nullopt;
    for (std::string& text : *texts)
      text = budget_.take(std::move(text), 1000);
    return texts;
  }

  std::string why_no_advantages() const {
    if (!advantages_.why_not().empty()) return advantages_.why_not();
    if (samples_ == 0) return "there are no rollouts";
    return advantages_.need_logprobs()
               ? "the KL in the reward needs log-probs, which the experience log no longer has "
                 "(run.keep_experience keeps them)"
               : "rows of the rollout files are missing, have no score or are forks of an episode";
  }

  std::string why_no_tokens() const {
    if (samples_ == 0) return "there are no rollouts";
    if (!log_seen_) {
      return "the experience log has only updates since the last checkpoint ("
             "run.keep_experience keeps all)";
    }
    if (tokenizer_looked_for_ && !tokenizer_)
      return "no tokenizer can be read where actor.model_name_or_path and the checkpoints have it";
    return "the experience log does not have the samples that are shown";
  }

  const std::filesystem::path& run_;
  const std::uint64_t samples_max_;
  const ModelFolders& models_;
  Budget& budget_;
  Notes& notes_;
  const Advantages advantages_;
  std::optional<TokenTexts> tokenizer_;
  bool tokenizer_looked_for_ = false, log_seen_ = false, left_out_ = false;
  std::uint64_t samples_ = 0, read_ = 0, with_tokens_ = 0, with_advantages_ = 0;
};

}  // namespace

StepRollouts read_rollouts(const std::filesystem::path& file, Notes& notes) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, StepGroup> groups;
  StepRollouts out;
  const ObjectBounds bounds{limits::kReportLine_bytes_max, limits::kReportStep_bytes_max};
  const auto read = read_objects(file, "rollouts/" + file.filename().string(), bounds, notes,
                                 [&](ordered_json& row) {
                                   const std::uint64_t slot = whole_number(row, "slot"),
                                                       attempt = whole_number(row, "attempt");
                                   StepGroup& group = groups[{slot, attempt}];
                                   group.slot = slot;
                                   group.attempt = attempt;
                                   group.rows.push_back(std::move(row));
                                   ++out.samples;
                                   return true;
                                 });
  for (auto& [place, group] : groups)
    out.groups.push_back(std::move(group));
  out.whole = read.whole;
  return out;
}

ordered_json rollouts_json(const std::filesystem::path& run,
                           std::uint64_t samples_max,
                           const ModelFolders& models,
                           Budget& budget,
                           Notes& notes) {
  return RolloutPicker(run, samples_max, models, budget, notes).pick();
}

}  // namespace troupe::report
