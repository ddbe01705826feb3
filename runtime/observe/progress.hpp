// Shows a run's progress: on a terminal one line that is redrawn in place (step, bar, reward or
// loss, tokens/s, time left, what goes on), elsewhere one `key=value` line or one JSON object per
// update. Notes (log lines, evaluations) go above the live line. Safe on any thread; draws on the
// caller's thread.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/observe/live_line.hpp"
#include "runtime/observe/metric_row.hpp"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::observe {

enum class ProgressForm { kLive, kLines, kJson };

// `format`: --log.format (auto, plain or json). auto gives the live line if `out` is a terminal
// that can go back to the beginning of a line: TERM is neither dumb nor empty.
ProgressForm choose_form(std::string_view format, std::FILE* out);

struct ProgressStyle {
  ProgressForm form = ProgressForm::kLines;
  bool colour = false;
  std::size_t columns = 80;  // of the terminal; 0: ask `out` each time, for a window may change
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
  ~Progress();  // leaves the last line in place
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows a finished update by those of its metrics that are there: reward/mean (else policy/loss),
  // rewards/accuracies, kl/ref (else kl/rollout_train), perf/tokens_per_s, time/step,
  // async/generators, async/staleness_mean, response/length_mean. The ETA is computed from the last
  // kEtaSteps updates.
  void update(const MetricRow& row);
  // Time that was no update's, such as an evaluation's: the ETA leaves it out.
  void leave_out(double seconds);
  // Sets the text that says what is going on now; only the live line shows it.
  void activity(std::string_view text);
  // Prints a text for the user, above the live line if there is one.
  void note(std::string_view text);
  // Draws the live line again with the current time and width, if it was drawn before.
  void redraw();
  bool live() const noexcept { return style_.form == ProgressForm::kLive; }

  static constexpr std::size_t kEtaSteps = 16;

 private:
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
  void take_figures(const MetricRow& row);
  void print(std::string_view text);

  std::FILE* out_;
  ProgressStyle style_;
  const core::Clock& clock_;
  std::uint64_t steps_;
  core::TimePoint start_;
  std::deque<Mark> marks_;  // the last kEtaSteps + 1, oldest first
  std::mutex mutex_;
  std::uint64_t step_ = 0;
  std::vector<LinePart> figures_;  // "reward 0.61", "812 tokens/s", ...
  std::string activity_;
  bool drawn_ = false;
};

// "45 s", "3 min 05 s", "2 h 07 min".
std::string duration_text(double seconds);

}  // namespace troupe::observe
