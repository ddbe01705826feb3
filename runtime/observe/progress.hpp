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

// `format`: --log.format (auto, plain or json). auto gives the live block if `out` is a terminal,
// unless TERM=dumb.
ProgressForm choose_form(std::string_view format, std::FILE* out);

struct ProgressStyle {
  ProgressForm form = ProgressForm::kLines;
  bool colour = false;
  std::size_t columns = 80;  // of the terminal
};

// Form, colour and width for `out`. The environment variable NO_COLOR turns colour off.
ProgressStyle detect_style(std::string_view format, std::FILE* out);

class Progress {
 public:
  // Writes to `out` and measures time with `clock`; both outlive this object. `first_step` of
  // `steps` updates are done already.
  Progress(std::FILE* out,
           ProgressStyle style,
           const core::Clock& clock,
           std::uint64_t first_step,
           std::uint64_t steps);
  ~Progress();  // leaves the last block in place
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows a finished update by those of its metrics that are there: reward/mean (else policy/loss),
  // rewards/accuracies, kl/ref (else kl/rollout_train), perf/tokens_per_s, time/step,
  // async/generators, async/staleness_mean, response/length_mean. The ETA is computed from the last
  // kEtaSteps updates.
  void update(const MetricRow& row);
  // Time that was no update's, such as an evaluation's: the ETA leaves it out.
  void leave_out(double seconds);
  // Sets the text that says what is going on now; only the live block shows it.
  void activity(std::string_view text);
  // Prints a text for the user, above the live block if there is one.
  void note(std::string_view text);
  // Draws the live block again with the current time, if it was drawn before.
  void redraw();
  bool live() const noexcept { return style_.form == ProgressForm::kLive; }

  static constexpr std::size_t kEtaSteps = 16;

 private:
  struct Shown {
    std::uint64_t step = 0;
    std::string facts;    // "reward 0.61  kl 0.0012  ..."
    std::string company;  // "generators up 2  age of tokens 0.5 updates  ..."
  };
  // The time at which `step` updates were done.
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
  std::deque<Mark> marks_;  // the last kEtaSteps + 1, oldest first
  std::mutex mutex_;
  Shown shown_;
  std::string activity_;
  int drawn_lines_ = 0;
};

// "45 s", "3 min 05 s", "2 h 07 min".
std::string duration_text(double seconds);

}  // namespace troupe::observe
