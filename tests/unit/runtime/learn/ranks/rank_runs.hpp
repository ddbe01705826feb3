// Short trainings on tiny models, each a function of its ranks, and all that they leave behind: for
// tests that say that the number of ranks and the stage change no bit.
#pragma once

#include "runtime/experience/row.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/learn/ranks/rank_threads.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/store/joined_state.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn::test {

using Figures = std::vector<std::pair<std::string, double>>;

// The files of a state, as one process writes them, and every rank's own weights and figures.
struct Leavings {
  troupe::test::FilesByName files;
  std::vector<float> weights;
  Figures figures;
  friend bool operator==(const Leavings&, const Leavings&) = default;
};

// A training by one rank; it saves its state into the folder.
using RankRun =
    std::function<void(const Ranks& ranks, const std::filesystem::path& folder, Leavings& out)>;

inline Leavings run_alone(const RankRun& run) {
  const troupe::test::TempFolder folder;
  Leavings out;
  run({}, folder.path(), out);
  out.files = troupe::test::joined_state(folder.path());
  return out;
}

// What each rank has in the end; all have the files.
inline std::vector<Leavings> run_on_ranks(const RankRun& run, int ranks, int stage) {
  const troupe::test::TempFolder folder;
  std::vector<Leavings> all(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](collective::Collectives& gang) {
    run({&gang, stage}, folder.path(), all[static_cast<std::size_t>(gang.rank())]);
  });
  const auto files = troupe::test::joined_state(folder.path());
  for (Leavings& one : all)
    one.files = files;
  return all;
}

// `own`: of a rank that is given its own blocks alone; what others have is NaN. Null: everything.
inline std::unique_ptr<model::ParamStore> start_weights(
    const model::ModelSpec& spec, const collective::Collectives* own = nullptr) {
  auto params = std::make_unique<model::ParamStore>(spec);
  model::randomise(*params, 11, 0.15f);
  if (own == nullptr) return params;
  auto part = std::make_unique<model::ParamStore>(spec);
  std::fill_n(part->data(), part->size(), std::numeric_limits<float>::quiet_NaN());
  for (const core::Range block : BlockShards::of_rank(own->rank(), own->size(), {0, part->size()}))
    std::copy_n(params->data() + block.begin, block.size(), part->data() + block.begin);
  return part;
}

inline std::vector<float> all_weights(const model::ParamStore& store) {
  return {store.data(), store.data() + store.size()};
}

inline void append(Figures& to, const Figures& from) {
  to.insert(to.end(), from.begin(), from.end());
}

inline std::shared_ptr<const model::PackedWeights> packed_on_host(const model::ParamStore& weights,
                                                                  core::Version version) {
  auto packed = std::make_shared<model::PackedWeights>(weights.spec());
  packed->fill({}, weights.to(core::host_memory()), version);
  return packed;
}

// Two updates of a policy. Six groups of four; one has nothing to learn from. `stale`: as if older
// weights had sampled those of the second.
struct PolicyRun {
  TrainerSettings settings;
  model::ModelSpec spec = tiny_spec();
  bool stale = false;
  bool episodes = false;    // samples have turns, and the second of a group is a fork of the first
  bool own_blocks = false;  // each rank starts from its own alone; also below
  bool on_device = false;

  void operator()(const Ranks& ranks, const std::filesystem::path& folder, Leavings& out) const {
    core::SerialTeam host;
    std::string why;
    const auto device = on_device ? model::make_device_team(why) : nullptr;
    ASSERT_TRUE(device || !on_device) << why;
    core::TeamRunner& team = on_device ? *device : host;
    TrainerSettings own = settings;
    own.optim.ranks = ranks;
    auto made =
        PolicyTrainer::create(start_weights(spec, own_blocks ? ranks.gang : nullptr), own, team);
    ASSERT_TRUE(made) << made.error().message;
    PolicyTrainer& trainer = **made;
    for (std::uint64_t update = 0; update < 2; ++update) {
      ASSERT_TRUE(trainer.gather());
      const auto host_weights =
          on_device ? packed_on_host(trainer.master(), trainer.version()) : trainer.packed();
      auto groups = random_groups(*host_weights, update, 6, 4);
      if (episodes) make_episodes(groups);
      for (auto& sample : groups[1].samples)
        sample.score = 0.5;
      core::Rng rng(9 + update);
      for (auto& group : groups) {
        for (auto& sample : group.samples) {
          if (stale && update > 0) age(sample, rng);
          for (std::size_t t = 0; t < sample.tokens.size(); ++t)
            sample.values.push_back(static_cast<float>(rng.next_normal()));
        }
      }
      const auto report = trainer.update(std::move(groups));
      ASSERT_TRUE(report) << report.error().message;
      append(out.figures, report->metrics);
      append(out.figures, {{"version", static_cast<double>(report->version)},
                           {"steps", static_cast<double>(report->optimiser_steps)},
                           {"skipped", static_cast<double>(report->skipped_steps)},
                           {"micro", static_cast<double>(report->micro_batches)}});
    }
    const auto saved = trainer.save_state(folder);
    ASSERT_TRUE(saved) << saved.error().message;
    ASSERT_TRUE(trainer.gather());
    out.weights = model::numbers_of(trainer.master());
    if (trainer.average() != nullptr) {
      const auto average = all_weights(*trainer.average());
      out.weights.insert(out.weights.end(), average.begin(), average.end());
    }
  }

  static void make_episodes(std::vector<experience::Group>& groups) {
    core::Rng rng(31);
    for (auto& group : groups) {
      for (auto& sample : group.samples) {
        sample.turns = {{0, random_tokens(rng, rng.next_below(4))}};
        if (sample.tokens.size() > 3) sample.turns.push_back({3, random_tokens(rng, 2)});
        sample.steps = {{0, rng.next_uniform()}};
      }
      const experience::Row row = experience::row_of(group.samples[0]);
      auto& context = group.samples[1].turns[0].context;
      context.insert(context.begin(), row.ids.begin(), row.ids.begin() + row.drawn[0] + 1);
      group.samples[1].shares = experience::Shares{0, 1};
      group.samples[0].episode = group.samples[1].episode = 1;
    }
  }

  static void age(experience::Trajectory& sample, core::Rng& rng) {
    sample.versions =
        experience::VersionRuns::all(sample.versions.front() - 1, sample.tokens.size());
    for (float& logprob : sample.behaviour)
      logprob += 0.3f * static_cast<float>(rng.next_normal());
  }
};

// Values, then two epochs in two mini-batches.
struct CriticRun {
  CriticSettings settings;
  bool own_blocks = false;

  void operator()(const Ranks& ranks, const std::filesystem::path& folder, Leavings& out) const {
    core::SerialTeam team;
    CriticSettings own = settings;
    own.optim.ranks = ranks;
    auto made = CriticTrainer::create(
        start_weights(model::with_score_head(tiny_spec(false)), own_blocks ? ranks.gang : nullptr),
        own, team);
    ASSERT_TRUE(made) << made.error().message;
    const auto language = start_weights(tiny_spec());
    model::PackedWeights packed(language->spec());
    team.run([&](core::Team member) { packed.fill(member, *language, 0); });
    const auto groups = random_groups(packed, 3, 5, 4);
    const auto old = (*made)->values(groups);
    ASSERT_TRUE(old) << old.error().message;
    TokenValues returns = *old;
    for (auto& group : returns) {
      for (auto& sample : group) {
        for (float& value : sample) {
          append(out.figures, {{"value", value}});
          value += sample.size() % 2 == 0 ? 1.0f : -0.5f;
        }
      }
    }
    const auto report = (*made)->update(groups, *old, returns);
    ASSERT_TRUE(report) << report.error().message;
    append(out.figures, report->metrics);
    ASSERT_TRUE((*made)->save_state(folder));
    ASSERT_TRUE((*made)->gather());
    out.weights = all_weights((*made)->master());
  }
};

// Three steps of a supervised method over 13 rows, and an evaluation; or the first `steps_max`.
struct SupervisedRun {
  SupervisedSettings settings;
  model::ModelSpec spec = tiny_spec();
  bool own_blocks = false;
  std::size_t steps_max = 3;

  data::SupervisedDataset rows() const {
    core::Rng rng(5);
    std::vector<data::TokenRow> rows(13);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].answer = random_tokens(rng, 2 + rng.next_below(14));
      if (settings.loss.method->sequences()) continue;
      if (settings.loss.method->steps()) {
        for (std::size_t t = 0; t < rows[i].answer.size(); ++t) {
          const bool place = t % 3 == 1;
          rows[i].learn.push_back(place ? 1 : 0);
          if (place) rows[i].labels.push_back((t + i) % 2 == 0 ? 3 : 8);
        }
        continue;
      }
      rows[i].prompt = random_tokens(rng, 2 + rng.next_below(8));
      if (settings.loss.method->pairs())
        rows[i].rejected = random_tokens(rng, 2 + rng.next_below(8));
    }
    return data::SupervisedDataset::of_tokens(rows);
  }

  void operator()(const Ranks& ranks, const std::filesystem::path& folder, Leavings& out) const {
    core::SerialTeam team;
    SupervisedSettings own = settings;
    own.optim.ranks = ranks;
    if (settings.loss.method->teacher) own.teachers = {frozen_model(21)};
    const bool scores = settings.loss.method->scores;
    auto made = SupervisedTrainer::create(
        start_weights(scores ? model::with_score_head(tiny_spec(false)) : spec,
                      own_blocks ? ranks.gang : nullptr),
        nullptr, own, team);
    ASSERT_TRUE(made) << made.error().message;
    const data::SupervisedDataset data = rows();
    const std::vector<std::vector<std::uint64_t>> steps = {
        {12, 11, 10}, {3, 0, 5, 1, 4, 2, 9, 8, 7, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
    for (std::size_t i = 0; i < steps_max; ++i) {
      const auto step = (*made)->step(data.rows(steps[i]));
      ASSERT_TRUE(step) << step.error().message;
      append(out.figures, step->metrics);
      append(out.figures, {{"applied", step->applied ? 1.0 : 0.0},
                           {"micro", static_cast<double>(step->micro_batches)}});
    }
    if (steps_max == steps.size()) {
      const auto evaluation = (*made)->evaluate(data.all());
      ASSERT_TRUE(evaluation) << evaluation.error().message;
      append(out.figures, evaluation->metrics);
    }
    ASSERT_TRUE((*made)->save_state(folder));
    ASSERT_TRUE((*made)->gather());
    out.weights = all_weights((*made)->master());
  }
};

}  // namespace troupe::learn::test
