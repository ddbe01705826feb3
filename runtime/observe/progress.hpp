// Shows a run's progress: on a terminal one block that is redrawn in place (step, elapsed time,
// ETA, reward, KL, tokens/s, generators, current activity), elsewhere one `key=value` line or one
// JSON object per update. Notes (log lines, evaluations) go above the block. Safe on any thread;
// draws on the caller's thread.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/observe/metric_row.hpp"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::observe {

enum class ProgressForm { kLive, kLines, kJson };

// `format` is --log.format (auto, plain, json). NO_COLOR turns off the live block's colours,
// TERM=dumb the block itself.
ProgressForm choose_form(std::string_view format, std::FILE* out);

struct ProgressStyle {
  ProgressForm form = ProgressForm::kLines;
  bool colour = false;
  std::size_t columns = 80;  // of the terminal
};

// Form, colour and width for `out` as the environment says.
ProgressStyle detect_style(std::string_view format, std::FILE* out);

class Progress {
 public:
  // Writes to `out` and measures time with `clock`; both outlive it. The run stands at `first_step`
  // of `steps` updates.
  Progress(std::FILE* out,
           ProgressStyle style,
           const core::Clock& clock,
           std::uint64_t first_step,
           std::uint64_t steps);
  ~Progress();  // leaves the last block in place
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // An update is done: shows reward/mean (else policy/loss and rewards/accuracies), kl/ref (else
  // kl/rollout_train), perf/tokens_per_s, time/step; async/generators, async/staleness_mean,
  // response/length_mean where they are there. The ETA follows from the last kEtaSteps updates.
  void update(const MetricRow& row);
  // What is going on now ("generate 12/64"); seen in the live block alone.
  void activity(std::string_view text);
  // A line for the user.
  void note(std::string_view text);
  // Draws the live block with the time as it is now, once there is one.
  void redraw();
  bool live() const noexcept { return style_.form == ProgressForm::kLive; }

  static constexpr std::size_t kEtaSteps = 16;

 private:
  struct Shown {
    std::uint64_t step = 0;
    std::string facts;    // "reward 0.61  kl 0.0012  ..."
    std::string company;  // "generators up 2  age of tokens 0.5 updates  ..."
  };
  // When the run stood at which step.
  struct Mark {
    std::uint64_t step;
    core::TimePoint at;
  };
  void mark(std::uint64_t step);
  std::string eta_text() const;
  std::string elapsed_text() const;
  void draw();
  void erase();
  void print(std::string_view text);

  std::FILE* out_;
  ProgressStyle style_;
  const core::Clock& clock_;
  std::uint64_t steps_;
  core::TimePoint start_;
  std::deque<Mark> marks_;  // of the start or the last updates, oldest first
  std::mutex mutex_;
  Shown shown_;
  std::string activity_;
  int drawn_lines_ = 0;
};

// "45 s", "3 min 05 s", "2 h 07 min".
std::string duration_text(double seconds);

}  // namespace troupe::observe
