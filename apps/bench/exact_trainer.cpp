// The trainer's side of `troupe bench exact`.
#include "apps/bench/exact_parts.hpp"
#include "apps/bench/exact_sides.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace troupe::bench {
namespace {

constexpr std::int64_t kActivation_bytes_max = std::int64_t{320} << 20;
constexpr std::array<std::int64_t, 6> kRowLimits = {48, 1024, 200, 512, 96, 700};

// Moves one weight up by one unit in the last place and returns its name. The weight is one of a
// norm, because every token's result depends on it; rounding would hide a change in one weight of a
// projection for all but a few tokens. Where a norm multiplies by 1 + its weight, the unit is that
// of the sum.
std::string plant_ulp(model::ParamStore& params) {
  const std::string name = "model.layers.0.input_layernorm.weight";
  float& weight = params.view(name).front();
  const float added = params.spec().norm_plus_one ? 1.0f : 0.0f;
  const float factor = added + weight;
  weight = std::nextafter(factor, 2.0f * std::abs(factor) + 1.0f) - added;
  return name + "[0]";
}

// The number of rows whose activations, kept for the backward pass, take about `bytes`.
std::int64_t rows_within(const model::ModelSpec& spec, std::int64_t bytes) {
  const std::int64_t per_row =
      spec.layers *
      (2 * spec.hidden + spec.qkv_width() + spec.q_width() + 2 * spec.dense_ffn() +
       spec.moe.experts_per_token * (2 * spec.hidden + 3 * spec.moe.ffn)) *
      4;
  return std::max<std::int64_t>(1, bytes / per_row);
}

class TrainerRun {
 public:
  TrainerRun(const learn::Trainers& trainers,
             const model::ParamStore& master,
             kernels::PanelDtype dtype,
             ExactTeams& teams,
             core::Rng rng)
      : trainers_(trainers),
        teams_(teams),
        master_(master.to(teams.wide().memory())),
        grads_(master_.same_layout()),
        weights_(master.spec(), dtype, teams.wide().memory()),
        rng_(rng) {
    const std::int64_t rows = rows_within(master.spec(), kActivation_bytes_max);
    for (const std::int64_t limit : kRowLimits)
      row_limits_.push_back(std::min(limit, rows));
    teams_.wide().run([&](core::Team member) { weights_.fill(member, master_, 0); });
  }

  // Groups that the engine sampled on two threads go through a team of one, the others through a
  // team of two.
  core::Result<void> check(const Transcript& transcript) {
    std::set<std::pair<bool, float>> kinds;
    for (const TranscriptGroup& group : transcript.groups)
      kinds.emplace(group.threads > 1, group.temperature);
    for (const auto& [serial, temperature] : kinds) {
      std::vector<const TranscriptGroup*> groups;
      for (const TranscriptGroup& group : transcript.groups) {
        if ((group.threads > 1) == serial && group.temperature == temperature)
          groups.push_back(&group);
      }
      core::TeamRunner& team = serial ? teams_.narrow() : teams_.wide();
      const auto pass = trainers_.pass(team, master_, grads_);
      for (const PartBatch& batch : pack_parts(shuffled_parts(groups, rng_), row_limits_))
        TROUPE_TRY(check_batch(*pass, team, batch, temperature));
    }
    return {};
  }

  nlohmann::ordered_json figures() const {
    return {{"tokens", difference_.tokens},
            {"differing_bits", difference_.differing_bits},
            {"differing_tokens", difference_.differing_tokens},
            {"absolute_max", difference_.absolute_max},
            {"micro_batches", micro_batches_},
            {"rows", {rows_min_, rows_max_}},
            {"grad_norm", grad_norm_},
            {"isa", teams_.isa()}};
  }

 private:
  core::Result<void> check_batch(learn::TrainPass& pass,
                                 core::TeamRunner& team,
                                 const PartBatch& batch,
                                 float temperature) {
    TROUPE_TRY(model::build_group_plan(model_groups(batch), master_.spec(), team.size(), plan_));
    plan_.plan.place(team.memory());
    TROUPE_TRY_ASSIGN(logprobs,
                      pass.logprobs(weights_, plan_.plan, plan_.targets, temperature, false));
    difference_.add(compare(batch, logprobs));
    const std::int64_t rows = plan_.plan.rows();
    rows_min_ = micro_batches_ == 0 ? rows : std::min(rows_min_, rows);
    rows_max_ = std::max(rows_max_, rows);
    if (micro_batches_++ == 0) TROUPE_TRY(prove_live(pass));
    return {};
  }

  core::Result<void> prove_live(learn::TrainPass& pass) {
    TROUPE_TRY(pass.backward(1));
    grad_norm_ = learn::global_norm(teams_.wide(), grads_.data(), grads_.size());
    if (std::isfinite(grad_norm_) && grad_norm_ > 0) return {};
    return core::fail(ErrorCode::kNumeric,
                      "the backward pass of the training forward gave a gradient of norm " +
                          std::to_string(grad_norm_));
  }

  const learn::Trainers& trainers_;
  ExactTeams& teams_;
  model::ParamStore master_, grads_;
  model::PackedWeights weights_;
  core::Rng rng_;
  std::vector<std::int64_t> row_limits_;
  model::GroupPlan plan_;
  Difference difference_;
  std::int64_t micro_batches_ = 0;
  std::int64_t rows_min_ = 0, rows_max_ = 0;  // of a micro-batch
  double grad_norm_ = 0;                      // of one backward pass: shows that autograd was on
};

}  // namespace

core::Result<nlohmann::ordered_json> run_trainer_side(const std::filesystem::path& model,
                                                      const ExactPlace& place,
                                                      const std::filesystem::path& transcript_file,
                                                      std::uint64_t seed,
                                                      bool plant) {
  TROUPE_TRY_ASSIGN(teams, ExactTeams::open(place));
  TROUPE_TRY_ASSIGN(transcript, read_transcript(transcript_file));
  TROUPE_TRY_ASSIGN(master, model::load_model(model));
  std::string planted;
  if (plant) planted = plant_ulp(*master);
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TrainerRun run(*trainers, *master, place.dtype, teams, core::Rng(seed, 2));
  TROUPE_TRY(run.check(transcript));
  nlohmann::ordered_json figures = run.figures();
  if (!planted.empty()) figures["planted"] = planted;
  return figures;
}

}  // namespace troupe::bench
