#include "actors/reward/model_reward.hpp"

#include "actors/reward/scored_text.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::reward {
namespace {

using Ids = std::vector<std::int32_t>;

// Consecutive samples (by index) that share their first `shared` tokens.
struct Bundle {
  std::vector<std::size_t> items;
  std::size_t shared = 0;
};

std::size_t common_prefix(const Ids& a, const Ids& b, std::size_t most) {
  std::size_t length = 0;
  while (length < most && length < a.size() && length < b.size() && a[length] == b[length])
    ++length;
  return length;
}

// Bundles consecutive samples with a common prefix; each keeps at least one token of its own.
std::vector<Bundle> bundles_of(const std::vector<Ids>& tokens, std::int64_t rows_max) {
  std::vector<Bundle> bundles;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) continue;
    const std::size_t own = tokens[i].size() - 1;
    if (!bundles.empty()) {
      Bundle& open = bundles.back();
      const Ids& first = tokens[open.items.front()];
      const std::size_t shared = common_prefix(first, tokens[i], std::min(open.shared, own));
      auto wanted = static_cast<std::int64_t>(tokens[i].size());
      for (const std::size_t item : open.items) {
        wanted += static_cast<std::int64_t>(tokens[item].size() - shared);
      }
      // A sample that shares less than half of what the others share costs more than it saves.
      if (shared > 0 && shared * 2 >= open.shared && wanted <= rows_max) {
        open.items.push_back(i);
        open.shared = shared;
        continue;
      }
    }
    bundles.push_back({{i}, own});
  }
  return bundles;
}

class ModelReward final : public RewardSource {
 public:
  ModelReward(ModelRewardOptions options,
              std::shared_ptr<const model::PackedWeights> weights,
              text::Tokenizer tokenizer,
              ScoredText text,
              std::int32_t eos,
              core::TeamRunner& team)
      : options_(std::move(options)),
        weights_(std::move(weights)),
        tokenizer_(std::move(tokenizer)),
        text_(std::move(text)),
        eos_(eos),
        team_(team) {}

  std::string name() const override { return options_.folder.filename().string(); }
  RewardReads reads() const override { return text_.reads(); }

  core::Result<std::vector<RewardScore>> score(const std::vector<RewardGroup>& groups,
                                               core::Duration) override {
    std::vector<RewardScore> scores(samples_in(groups));
    std::vector<Ids> tokens(scores.size());
    std::size_t at = 0;
    for (const RewardGroup& group : groups) {
      for (const RewardSample& sample : group.samples) {
        if (auto ids = tokens_of(group, sample.response)) {
          tokens[at] = std::move(*ids);
        } else {
          scores[at].cause = ids.error().message;
        }
        ++at;
      }
    }
    const std::vector<Bundle> bundles = bundles_of(tokens, options_.rows_max);
    for (std::size_t begin = 0; begin < bundles.size();) {
      std::vector<model::SampleGroup> batch;
      std::vector<std::size_t> order;
      std::int64_t rows = 0;
      std::size_t end = begin;
      for (; end < bundles.size(); ++end) {
        model::SampleGroup group = group_of(bundles[end], tokens);
        rows += model::rows_of(group, model::GroupRows::kLast);
        if (end > begin && rows > options_.rows_max) break;
        batch.push_back(std::move(group));
        order.insert(order.end(), bundles[end].items.begin(), bundles[end].items.end());
      }
      TROUPE_TRY(score_batch(batch, order, scores));
      begin = end;
    }
    return scores;
  }

 private:
  // The sample's tokens, ending with exactly one end-of-sequence token.
  core::Result<Ids> tokens_of(const RewardGroup& group, const std::string& response) const {
    TROUPE_TRY_ASSIGN(made, text_.of(group, response));
    while (!made.text.empty() && made.text.back() == '\n')
      made.text.pop_back();
    TROUPE_TRY_ASSIGN(ids, tokenizer_.ids(made.text, made.front));
    if (ids.empty() || ids.back() != eos_) ids.push_back(eos_);
    const std::int64_t context = weights_->spec().context;
    if (ids.size() < 2) return core::fail(ErrorCode::kData, "prompt and response are empty");
    if (static_cast<std::int64_t>(ids.size()) <= context) return ids;
    return core::fail(ErrorCode::kData, "prompt and response have " + std::to_string(ids.size()) +
                                            " tokens, the reward model's context is " +
                                            std::to_string(context));
  }

  static model::SampleGroup group_of(const Bundle& bundle, const std::vector<Ids>& tokens) {
    model::SampleGroup group;
    const Ids& first = tokens[bundle.items.front()];
    group.prompt = std::span(first).first(bundle.shared);
    for (const std::size_t item : bundle.items) {
      group.responses.push_back(std::span(tokens[item]).subspan(bundle.shared));
    }
    return group;
  }

  core::Result<void> score_batch(const std::vector<model::SampleGroup>& groups,
                                 const std::vector<std::size_t>& order,
                                 std::vector<RewardScore>& scores) {
    const model::ModelSpec& spec = weights_->spec();
    TROUPE_TRY(model::build_group_plan(groups, spec, team_.size(), plan_, model::GroupRows::kLast));
    plan_.plan.place(team_.memory());
    std::vector<float> values(order.size());
    model::score_values(team_, *weights_, plan_.plan, scratch_, values);
    for (std::size_t i = 0; i < order.size(); ++i) {
      double value = values[i];
      if (options_.normalise) value = (value - spec.score_mean) / spec.score_std;
      if (std::isfinite(value)) {
        scores[order[i]].value = value;
      } else {
        scores[order[i]].cause = "the reward model's score is not a finite number";
      }
    }
    return {};
  }

  ModelRewardOptions options_;
  std::shared_ptr<const model::PackedWeights> weights_;
  text::Tokenizer tokenizer_;
  ScoredText text_;
  std::int32_t eos_;
  core::TeamRunner& team_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

struct Folder {
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat;
  std::int32_t eos = 0;
};

core::Result<Folder> open_folder(const std::filesystem::path& path, bool as_chat) {
  TROUPE_TRY_ASSIGN(spec, model::read_spec(path));
  if (spec.head != model::HeadKind::kScore) {
    return core::fail(ErrorCode::kConfig,
                      "reward.model_name_or_path: " + path.string() +
                          " has no score head (it is a " + spec.architecture + ")",
                      "train one with `troupe train rm`, or give a *ForSequenceClassification "
                      "model with one label");
  }
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(path));
  const auto ends = tokenizer.eos_ids();
  const std::vector<std::int32_t>& end = ends.empty() ? spec.eos : ends;
  if (end.empty()) {
    return core::fail(
        ErrorCode::kConfig,
        path.string() + " names no end-of-sequence token, which a reward model's texts end with",
        "set eos_token in its tokenizer_config.json");
  }
  TROUPE_TRY_ASSIGN(chat, text::load_template(path, as_chat));
  return core::Result<Folder>(Folder{std::move(tokenizer), std::move(chat), end.front()});
}

}  // namespace

core::Result<void> check_reward_folder(const std::filesystem::path& folder, bool as_chat) {
  TROUPE_TRY(open_folder(folder, as_chat));
  return {};
}

core::Result<std::unique_ptr<RewardSource>> make_model_reward(ModelRewardOptions options,
                                                              core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, open_folder(options.folder, options.columns.apply_chat_template));
  TROUPE_TRY_ASSIGN(params, model::load_model(options.folder, model::HeadKind::kScore));
  TROUPE_TRY(model::check_memory(params->spec(), team.memory(), "reward"));
  auto packed = std::make_shared<model::PackedWeights>(params->spec(), kernels::PanelDtype::kF32,
                                                       team.memory());
  team.run([&](core::Team member) { packed->fill(member, *params, 0); });
  ScoredText text{options.columns, std::move(folder.chat), options.folder};
  return std::unique_ptr<RewardSource>(std::make_unique<ModelReward>(
      std::move(options), std::move(packed), std::move(folder.tokenizer), std::move(text),
      folder.eos, team));
}

}  // namespace troupe::actors::reward
