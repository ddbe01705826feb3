// Warns of a policy that pleases its reward and not its held-out sets: when the training reward is
// higher than at a set's best evaluation, and the score of the set (10 problems or more) is lower,
// beyond chance. The state is
// a function of metrics.jsonl and eval/, so a resumed run has it again. Not thread-safe;
// RunReporter uses it under its lock.
#pragma once

#include "apps/session/eval_figures.hpp"
#include "runtime/learn/evaluation.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::session {

class TruthAlarm {
 public:
  struct Alarm {
    std::string set;                           // "": of eval.dataset
    std::uint64_t since = 0;                   // updates done at its best evaluation
    double reward_before = 0, reward_now = 0;  // training reward then and now
    double truth_before = 0, truth_now = 0;    // mean score of its problems
    learn::Interval fall;                      // of the difference, paired over problems
    std::string text() const;                  // for the user
  };

  // The mean score of an update's samples.
  void on_reward(double mean);
  // The problems of a sampled evaluation after `done` updates, in which the policy took part since
  // the last one. The training reward at an evaluation is the mean over the updates since the one
  // before; at the first, that of the first update, which the untrained policy sampled.
  std::vector<Alarm> on_evaluation(std::uint64_t done, const std::vector<EvalProblem>& problems);
  // Reads what an earlier life of the run has written.
  void restore(const store::RunFolder& folder);

 private:
  using Means = std::map<std::uint64_t, double>;  // of the problems, by row
  struct Best {
    std::uint64_t done = 0;
    std::optional<double> reward;  // none: before the first update
    double truth = 0;
    Means means;
  };
  std::optional<Alarm> compared(const std::string& set, const Best& best, const Means& now) const;

  double reward_sum_ = 0;
  std::uint64_t rewards_ = 0;  // updates since the last evaluation
  std::map<std::string, Best> best_;
};

}  // namespace troupe::session
