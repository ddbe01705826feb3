// A policy trainer on the tiny model with groups that its own weights sampled, and a folder of its
// own: for the tests of what reinforcement learning adds to the trainer.
#pragma once

#include "runtime/learn/rl/trainer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::learn {

using Table = std::map<std::string, double>;

inline TrainerSettings settings_of(Chosen<Objective> objective = "decoupled") {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-2;
  settings.batch.micro_tokens_max = 4096;
  settings.total_steps = 40;
  settings.algo.objective = objective;
  return settings;
}

class PolicyTrainerRl : public testing::Test {
 protected:
  PolicyTrainerRl()
      : folder_(std::filesystem::temp_directory_path() /
                ("troupe_trainer_rl_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PolicyTrainerRl() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<PolicyTrainer> make(const TrainerSettings& settings, std::uint64_t seed = 11) {
    auto params = std::make_unique<model::ParamStore>(tiny_spec());
    model::randomise(*params, seed, 0.15f);
    auto trainer = PolicyTrainer::create(std::move(params), settings, team_);
    EXPECT_TRUE(trainer.has_value()) << (trainer ? "" : trainer.error().message);
    return std::move(trainer).value();
  }

  // Groups of the trainer's weights, with values.
  static std::vector<experience::Group> groups_of(PolicyTrainer& trainer,
                                                  std::uint64_t update,
                                                  std::size_t samples = 4) {
    auto groups = random_groups(*trainer.packed(), update, 4, samples);
    core::Rng rng(500 + update);
    for (auto& group : groups) {
      for (auto& sample : group.samples) {
        for (std::size_t t = 0; t < sample.tokens.size(); ++t)
          sample.values.push_back(static_cast<float>(rng.next_normal()));
      }
    }
    return groups;
  }

  // The same, as if older weights had sampled them.
  static std::vector<experience::Group> stale(std::vector<experience::Group> groups) {
    core::Rng rng(9);
    for (auto& group : groups) {
      for (auto& sample : group.samples) {
        sample.versions =
            experience::VersionRuns::all(sample.versions.front() - 1, sample.tokens.size());
        for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
          sample.behaviour[t] += 0.3f * static_cast<float>(rng.next_normal());
        }
      }
    }
    return groups;
  }

  static Table run(PolicyTrainer& trainer, const std::vector<experience::Group>& groups) {
    auto report = trainer.update(groups);
    EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().message);
    return report ? Table(report->metrics.begin(), report->metrics.end()) : Table{};
  }

  static double difference(const PolicyTrainer& a, const PolicyTrainer& b) {
    double most = 0;
    for (std::int64_t i = 0; i < a.master().size(); ++i) {
      most = std::max(most, std::fabs(static_cast<double>(a.master().data()[i]) -
                                      static_cast<double>(b.master().data()[i])));
    }
    return most;
  }

  core::SerialTeam team_;
  std::filesystem::path folder_;
};

}  // namespace troupe::learn
