#include "actors/reward/process_reward.hpp"

#include "actors/reward/limits.hpp"
#include "actors/reward/scored_text.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/process_reward.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::actors::reward {
namespace {

constexpr std::array<std::string_view, 4> kReduceNames = {"last", "min", "mean", "product"};
constexpr std::string_view kBlank = " \t\r\n";

// What the model is read by.
struct Marks {
  std::string placeholder, separator;
  std::int32_t placeholder_id = 0;
  std::vector<std::int32_t> reward_ids;
};

struct OpenedFolder {
  text::Tokenizer tokenizer;
  ScoredText text;
  Marks marks;
};

core::Result<std::int32_t> one_token(const text::Tokenizer& tokenizer,
                                     const std::string& text,
                                     const char* key) {
  auto id = tokenizer.single(text);
  if (id) return *id;
  return core::fail(ErrorCode::kConfig, std::string(key) + ": " + id.error().message);
}

core::Result<OpenedFolder> open_process_folder(const ProcessRewardOptions& options) {
  const std::string folder = options.folder.string();
  TROUPE_TRY_ASSIGN(spec, model::read_spec(options.folder));
  if (spec.head != model::HeadKind::kLanguage) {
    return core::fail(ErrorCode::kConfig,
                      "reward.process.model_name_or_path: " + folder +
                          " has a score head (it is a " + spec.architecture + ")",
                      "give a process reward model (`troupe train prm`), or set "
                      "--reward.model_name_or_path in its place");
  }
  TROUPE_TRY_ASSIGN(found, model::process_reward_of(spec));
  const model::ProcessReward trained = found.value_or(model::ProcessReward{});
  const auto either = [](const auto& given, const auto& other) {
    return given.empty() ? other : given;
  };
  Marks marks;
  marks.placeholder = either(options.placeholder_token, trained.placeholder);
  marks.separator = either(options.step_separator, either(trained.separator, std::string("\n\n")));
  const auto rewards = either(options.reward_tokens, trained.rewards);
  if (marks.placeholder.empty()) {
    return core::fail(ErrorCode::kConfig,
                      "reward.process.placeholder_token: the config.json of " + folder +
                          " does not say which token follows a step",
                      "give it");
  }
  if (rewards.size() < 2) {
    return core::fail(ErrorCode::kConfig,
                      "reward.process.reward_tokens: the config.json of " + folder +
                          " names no tokens among which the model chooses",
                      "give two or more, the best first");
  }
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(options.folder));
  TROUPE_TRY_SET(marks.placeholder_id,
                 one_token(tokenizer, marks.placeholder, "reward.process.placeholder_token"));
  for (const std::string& reward : rewards) {
    TROUPE_TRY_ASSIGN(id, one_token(tokenizer, reward, "reward.process.reward_tokens"));
    marks.reward_ids.push_back(id);
  }
  TROUPE_TRY_ASSIGN(chat, text::load_template(options.folder, options.columns.apply_chat_template));
  ScoredText text{options.columns, std::move(chat), options.folder};
  return OpenedFolder{std::move(tokenizer), std::move(text), std::move(marks)};
}

// A sample that goes through the model.
struct Marked {
  std::size_t sample = 0;
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> places;  // [tokens]: 1 at the placeholder of a step
  std::vector<std::uint32_t> ends;

  model::Sequence sequence() const { return {tokens, places}; }
};

std::size_t times(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + word.size()))
    ++count;
  return count;
}

class ProcessReward final : public RewardSource {
 public:
  ProcessReward(ProcessRewardOptions options,
                std::shared_ptr<const model::PackedWeights> weights,
                OpenedFolder folder,
                core::TeamRunner& team)
      : options_(std::move(options)),
        weights_(std::move(weights)),
        folder_(std::move(folder)),
        team_(team) {}

  std::string name() const override { return options_.folder.filename().string(); }
  RewardReads reads() const override { return folder_.text.reads(); }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration) override {
    std::vector<RewardScore> scores(samples_in(groups));
    std::vector<Marked> batch;
    std::int64_t rows = 0;
    std::size_t sample = 0;
    for (const RewardGroup& group : groups) {
      for (const RewardSample& one : group.samples) {
        auto marked = marked_of(group, one.response);
        if (marked) {
          marked->sample = sample;
          const std::int64_t own = model::rows_of_choice(marked->sequence());
          if (!batch.empty() && rows + own > options_.rows_max) {
            TROUPE_TRY(score_batch(batch, scores));
            batch.clear();
            rows = 0;
          }
          rows += own;
          batch.push_back(std::move(*marked));
        } else {
          scores[sample].cause = marked.error().message;
        }
        ++sample;
      }
    }
    if (!batch.empty()) TROUPE_TRY(score_batch(batch, scores));
    return scores;
  }

 private:
  core::Result<Marked> marked_of(const RewardGroup& group, const std::string& response) const {
    const Marks& marks = folder_.marks;
    const MarkedSteps steps = mark_steps(response, marks.separator, marks.placeholder);
    TROUPE_TRY_ASSIGN(made, folder_.text.of(group, steps.text));
    const std::string& text = made.text;
    TROUPE_TRY_ASSIGN(ids, folder_.tokenizer.ids(text, made.front));
    Marked marked{0, std::move(ids), {}, steps.ends};
    // The prompt may hold placeholders of its own, before those of the steps.
    const std::size_t written = times(text, marks.placeholder);
    std::size_t skipped = written - std::min(written, steps.ends.size());
    const auto all = std::count(marked.tokens.begin(), marked.tokens.end(), marks.placeholder_id);
    if (static_cast<std::size_t>(all) != skipped + steps.ends.size()) {
      return core::fail(ErrorCode::kData,
                        "the placeholder '" + marks.placeholder +
                            "' merges with the text next to it: " + std::to_string(all) +
                            " tokens of it were found for " +
                            std::to_string(skipped + steps.ends.size()),
                        "a process reward model wants one that stays a token of its own "
                        "(--reward.process.placeholder_token)");
    }
    for (const std::int32_t token : marked.tokens) {
      const bool placeholder = token == marks.placeholder_id;
      marked.places.push_back(placeholder && skipped == 0 ? 1 : 0);
      if (placeholder && skipped > 0) --skipped;
    }
    const std::int64_t context = weights_->spec().context;
    const std::int64_t rows = model::rows_of_choice(marked.sequence());
    if (rows <= context) return marked;
    return core::fail(ErrorCode::kData, "prompt and response with their placeholders have " +
                                            std::to_string(rows) +
                                            " tokens, the process reward model's context is " +
                                            std::to_string(context));
  }

  core::Result<void> score_batch(const std::vector<Marked>& batch,
                                 std::vector<RewardScore>& scores) {
    const auto& choices = folder_.marks.reward_ids;
    std::vector<model::Sequence> sequences;
    for (const Marked& marked : batch)
      sequences.push_back(marked.sequence());
    TROUPE_TRY(model::build_choice_plan(sequences, choices, weights_->spec(), team_.size(), plan_));
    plan_.plan.place(team_.memory());
    std::vector<float> logprobs(static_cast<std::size_t>(plan_.targets.size()));
    model::score_logprobs(team_, *weights_, plan_.plan, plan_.targets, 1.0f, scratch_, logprobs);
    auto next = logprobs.begin();
    for (const Marked& marked : batch) {
      RewardScore& score = scores[marked.sample];
      std::vector<StepScore> steps;
      for (const std::uint32_t end : marked.ends) {
        steps.push_back({end, first_share({&*next, choices.size()})});
        next += std::ssize(choices);
      }
      score.value = reduced(options_.reduce, steps);
      score.extra = R"({"steps":)" + std::to_string(steps.size()) + "}";
      if (!std::isfinite(*score.value)) {
        score.value.reset();
        score.cause = "a step's score is not a finite number";
      } else if (options_.gives_steps) {
        score.steps = std::move(steps);
      }
    }
    return {};
  }

  // The probability of the first choice among all.
  static double first_share(std::span<const float> logprobs) {
    const double most = *std::max_element(logprobs.begin(), logprobs.end());
    double sum = 0;
    for (const float logprob : logprobs)
      sum += std::exp(logprob - most);
    return std::exp(logprobs[0] - most) / sum;
  }

  const ProcessRewardOptions options_;
  std::shared_ptr<const model::PackedWeights> weights_;
  const OpenedFolder folder_;
  core::TeamRunner& team_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

std::string without(std::string text, const std::string& word) {
  for (auto at = text.find(word); at != text.npos;) {
    text.erase(at, word.size());
    at = text.find(word, at - std::min(at, word.size() - 1));  // what is left may make one more
  }
  return text;
}

}  // namespace

std::optional<StepReduce> step_reduce(std::string_view name) {
  const auto found = std::find(kReduceNames.begin(), kReduceNames.end(), name);
  if (found == kReduceNames.end()) return std::nullopt;
  return static_cast<StepReduce>(found - kReduceNames.begin());
}

MarkedSteps mark_steps(std::string_view response,
                       const std::string& separator,
                       const std::string& placeholder) {
  MarkedSteps marked;
  for (std::size_t begin = 0; begin <= response.size();) {
    const bool last = marked.ends.size() + 1 == limits::kRewardSteps_max;
    const std::size_t cut =
        std::min(last ? response.size() : response.find(separator, begin), response.size());
    const std::string_view piece = response.substr(begin, cut - begin);
    const auto text_end = piece.find_last_not_of(kBlank);
    if (text_end != piece.npos) {
      marked.text += (marked.ends.empty() ? "" : separator) +
                     without(std::string(piece.substr(0, text_end + 1)), placeholder) + placeholder;
      marked.ends.push_back(static_cast<std::uint32_t>(begin + text_end + 1));
    }
    begin = cut + separator.size();
    if (last) break;
  }
  if (!marked.ends.empty()) return marked;
  return {placeholder, {static_cast<std::uint32_t>(response.size())}};
}

double reduced(StepReduce reduce, const std::vector<StepScore>& steps) {
  double least = steps.front().score, sum = 0, product = 1;
  for (const StepScore& step : steps) {
    least = std::min(least, step.score);
    sum += step.score;
    product *= step.score;
  }
  switch (reduce) {
    case StepReduce::kLast:
      return steps.back().score;
    case StepReduce::kMin:
      return least;
    case StepReduce::kMean:
      return sum / static_cast<double>(steps.size());
    case StepReduce::kProduct:
      return product;
    case StepReduce::kSum:
      break;
  }
  return sum;
}

core::Result<void> check_process_folder(const ProcessRewardOptions& options) {
  TROUPE_TRY(open_process_folder(options));
  return {};
}

core::Result<std::unique_ptr<RewardSource>> make_process_reward(ProcessRewardOptions options,
                                                                core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, open_process_folder(options));
  TROUPE_TRY_ASSIGN(params, model::load_model(options.folder));
  TROUPE_TRY(model::check_memory(params->spec(), team.memory(), "reward"));
  auto packed = std::make_shared<model::PackedWeights>(params->spec(), kernels::PanelDtype::kF32,
                                                       team.memory());
  team.run([&](core::Team member) { packed->fill(member, *params, 0); });
  return std::unique_ptr<RewardSource>(std::make_unique<ProcessReward>(
      std::move(options), std::move(packed), std::move(folder), team));
}

}  // namespace troupe::actors::reward
