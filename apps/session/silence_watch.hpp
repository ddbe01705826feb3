// Notices a run from which little or nothing is learned though nothing fails: all scores are equal,
// all answers are cut, most samples have no score, every gradient is 0, every step is skipped. Says
// so once for each cause, with the key that mends it, and again at the end of the run. The state is
// a function of metrics.jsonl, so a resumed run has it again. Not thread-safe.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/observe/metric_row.hpp"
#include "runtime/store/run_folder.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::session {

// Samples whose scores an update learns from; 0: the method has no rewards.
std::uint64_t samples_of_update(const config::TrainConfig& config);

class SilenceWatch {
 public:
  // `samples`: samples_of_update.
  explicit SilenceWatch(std::uint64_t samples);

  // The metrics of an update; the causes that have now held for long enough and were not told
  // before, a line for each.
  std::vector<std::string> on_update(const observe::MetricRow& row);
  // At the end of the run: the causes that were told, and those of silence that held in all
  // updates.
  std::vector<std::string> summary() const;
  // Reads what the run has written so far.
  void restore(const store::RunFolder& folder);

 private:
  enum Kind : std::size_t { kAllCut, kEqual, kCut, kUnscored, kFlat, kSkipped, kKinds };
  struct Cause {
    bool nothing = true;           // nothing is learned then
    const char* what = "";         // "all groups had equal scores (...)"
    const char* mends = "";        // what to look at to fix it
    std::uint64_t streak_min = 3;  // updates
    std::uint64_t streak = 0, updates = 0;
    bool told = false;
  };

  std::array<bool, kKinds> signs_of(const observe::MetricRow& row) const;
  bool is_explained(std::size_t kind) const;

  const std::uint64_t samples_;
  std::uint64_t updates_ = 0;
  std::array<Cause, kKinds> causes_;
};

}  // namespace troupe::session
