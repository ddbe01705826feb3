// What a supervised run of a world is made of: the rows of its dataset, a trainer that hashes them,
// and a listener whose file has a line for each step and each evaluation.
#pragma once

#include "actors/supervised/rows_role.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "tests/sim/world/fake_data.hpp"
#include "tests/sim/world/fake_trainers.hpp"
#include "tests/sim/world/gangs.hpp"
#include "tests/sim/world/plan.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::sim {

inline constexpr std::uint64_t kTrainingRows = 13;  // no multiple of a step's
inline constexpr std::uint64_t kHeldOutRows = 3;
inline constexpr const char* kStepsFile = "/run/steps.log";

// Row r of the training set begins with the token kTokenOfRow0 + r, held-out rows with others.
actors::supervised::TrainingRows rows_of(const WorldPlan& plan);

// A supervised trainer: its weights are the rows that it has learned from, in their order. It
// checks that these are the rows of its next step, and that nothing is evaluated twice. One that
// failed in the middle of a step must not be used any more.
std::unique_ptr<learn::SupervisedTrainer> fake_supervised_trainer(cluster::sim::VirtualTime& time,
                                                                  Truth& truth,
                                                                  DiskView& disk,
                                                                  Gangs& gangs,
                                                                  const WorldPlan& plan);

// A line of kStepsFile.
struct StepLine {
  bool evaluation = false;
  std::uint64_t done = 0;  // steps
  std::uint64_t figure = 0;
  std::string text() const;
  friend bool operator==(const StepLine&, const StepLine&) = default;
};
// Without lines that a crash has torn.
std::vector<StepLine> read_steps(const std::string& text);
// What a run leaves that nobody disturbed: the places of its lines, without figures.
std::vector<StepLine> due_steps(const WorldPlan& plan);

class StepListener final : public FakeListener {
 public:
  // `kept`: the lines up to the checkpoint, which has `first` steps.
  StepListener(async::Timers& timers,
               Truth& truth,
               DiskView& disk,
               const std::vector<StepLine>& kept,
               std::uint64_t first);

  core::Result<void> on_update(const actors::controller::UpdateReport& report) override;
  core::Result<void> on_figures(std::uint64_t done,
                                const actors::controller::Metrics& figures,
                                const std::string& line) override;
  core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) override;
  async::task<core::Result<std::filesystem::path>> commit_checkpoint(std::uint64_t done) override;
  bool is_best(std::uint64_t done) const override;

 private:
  core::Result<void> add(const StepLine& line);

  std::uint64_t done_;
  std::filesystem::path folder_;                        // of the checkpoint that is begun
  std::map<std::uint64_t, std::uint64_t> evaluations_;  // figures by steps
};

}  // namespace troupe::sim
