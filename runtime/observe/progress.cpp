#include "runtime/observe/progress.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace troupe::observe {
namespace {

struct Named {
  const char* label;
  const char* key;
  const char* metric;
  const char* format;
  const char* unit;
  int rank;  // on the live line (LinePart)
};

// Ranks of the other parts of the live line.
constexpr int kLeftRank = 1, kBarRank = 3, kActivityRank = 4, kElapsedRank = 7;
constexpr std::size_t kActivity_columns_min = 12;

// The metrics that are shown, in this order. If a row has no kl/ref, KL is its kl/rollout_train.
constexpr Named kShown[] = {
    {"reward ", "reward", "reward/mean", "%.3f", "", 2},
    {"loss ", "loss", "policy/loss", "%.4f", "", 2},
    {"right ", "accuracy", "rewards/accuracies", "%.3f", "", 5},
    {"kl ", "kl", "kl/ref", "%.5f", "", 6},
    {"", "tokens_per_s", "perf/tokens_per_s", "%.0f", " tokens/s", 2},
    {"", "step_s", "time/step", "%.3g", " s a step", 8},
    {"generators up ", "generators", "async/generators", "%.0f", "", 9},
    {"age of tokens ", "age", "async/staleness_mean", "%.2g", " updates", 10},
    {"response ", "length", "response/length_mean", "%.0f", " tokens", 11},
};

std::optional<double> value_of(const MetricRow& row, const Named& named) {
  // The loss is shown only without a reward, that is in supervised training.
  if (std::string_view(named.key) == "loss" && row.find("reward/mean")) return std::nullopt;
  auto value = row.find(named.metric);
  if (!value && std::string_view(named.key) == "kl") value = row.find("kl/rollout_train");
  return value;
}

double seconds_between(core::TimePoint from, core::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string number(const char* format, double value) {
  return core::printed(format, value);
}

bool set_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::size_t terminal_columns(std::FILE* out) {
  winsize size = {};
  // A terminal over a serial line may not know its size.
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const long long whole = std::llround(seconds);
  if (whole < 60) return core::printed("%lld s", whole);
  if (whole < 3600) return core::printed("%lld min %02lld s", whole / 60, whole % 60);
  return core::printed("%lld h %02lld min", whole / 3600, whole / 60 % 60);
}

ProgressForm choose_form(std::string_view format, std::FILE* out) {
  if (format == "json") return ProgressForm::kJson;
  if (format == "plain" || ::isatty(::fileno(out)) == 0) return ProgressForm::kLines;
  const char* term = std::getenv("TERM");
  const std::string_view kind = term == nullptr ? "" : term;
  return kind.empty() || kind == "dumb" ? ProgressForm::kLines : ProgressForm::kLive;
}

ProgressStyle detect_style(std::string_view format, std::FILE* out) {
  const ProgressForm form = choose_form(format, out);
  const bool live = form == ProgressForm::kLive;
  return {form, live && !set_in_environment("NO_COLOR"), live ? std::size_t{0} : 80};
}

Progress::Progress(std::FILE* out,
                   ProgressStyle style,
                   const core::Clock& clock,
                   std::uint64_t first_step,
                   std::uint64_t steps)
    : out_(out), style_(style), clock_(clock), steps_(steps), start_(clock.now()) {
  step_ = first_step;
  mark(first_step);
}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  if (!drawn_) return;
  activity_.clear();
  draw();
  print("\n");
}

void Progress::mark(std::uint64_t step) {
  marks_.push_back({step, clock_.now()});
  if (marks_.size() > kEtaSteps + 1) marks_.pop_front();
}

void Progress::leave_out(double seconds) {
  const std::lock_guard lock(mutex_);
  const auto time = std::chrono::duration_cast<core::TimePoint::duration>(
      std::chrono::duration<double>(std::max(seconds, 0.0)));
  for (Mark& mark : marks_)
    mark.at = std::min(mark.at + time, clock_.now());
}

std::string Progress::eta_text() const {
  const Mark &first = marks_.front(), &last = marks_.back();
  if (last.step <= first.step || last.step >= steps_) return {};
  const double one =
      seconds_between(first.at, last.at) / static_cast<double>(last.step - first.step);
  // Assumes that the running update takes the mean time, or ends now if it took longer already.
  const double rest = std::max(0.0, one - seconds_between(last.at, clock_.now()));
  return duration_text(rest + one * static_cast<double>(steps_ - last.step - 1));
}

std::string Progress::elapsed_text() const {
  return duration_text(seconds_between(start_, clock_.now()));
}

void Progress::print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

void Progress::erase() {
  if (drawn_) print("\r\x1b[K");
  drawn_ = false;
}

// The cursor stays on the line: what another part of the program prints meanwhile is kept behind
// it. While it is written, the terminal does not wrap, whatever a character's width.
void Progress::draw() {
  const std::size_t columns = style_.columns > 0 ? style_.columns : terminal_columns(out_);
  const double share = steps_ == 0 ? 1.0 : static_cast<double>(step_) / static_cast<double>(steps_);
  const std::string eta = eta_text();
  std::vector<LinePart> parts = {
      {"step " + std::to_string(step_) + "/" + std::to_string(steps_)},
      {bar_text(share, columns < 100 ? 12 : 24), kBarRank},
  };
  parts.insert(parts.end(), figures_.begin(), figures_.end());
  parts.push_back({eta.empty() ? "" : eta + " left", kLeftRank});
  parts.push_back({elapsed_text() + (eta.empty() ? "" : " so far"), kElapsedRank});
  parts.push_back({activity_, kActivityRank, kActivity_columns_min, true});
  const std::string line = fitted_line(parts, columns > 1 ? columns - 1 : 1, style_.colour);
  print("\r\x1b[?7l" + line + "\x1b[K\x1b[?7h");
  drawn_ = true;
}

void Progress::take_figures(const MetricRow& row) {
  figures_.clear();
  for (const Named& named : kShown) {
    const auto value = value_of(row, named);
    if (value)
      figures_.push_back({named.label + number(named.format, *value) + named.unit, named.rank});
  }
}

void Progress::update(const MetricRow& row) {
  const std::lock_guard lock(mutex_);
  step_ = row.step;
  mark(row.step);
  if (style_.form == ProgressForm::kJson) {
    nlohmann::ordered_json object = {{"step", row.step}, {"steps", steps_}};
    for (const Named& named : kShown) {
      const auto value = value_of(row, named);
      if (value && std::isfinite(*value)) object[named.key] = *value;
    }
    print(object.dump() + "\n");
    return;
  }
  if (style_.form == ProgressForm::kLive) {
    take_figures(row);
    draw();
    return;
  }
  std::string line = "step=" + std::to_string(row.step) + "/" + std::to_string(steps_);
  for (const Named& named : kShown) {
    const auto value = value_of(row, named);
    if (value) line += std::string(" ") + named.key + "=" + number(named.format, *value);
  }
  if (std::string compact = eta_text(); !compact.empty()) {
    std::erase(compact, ' ');
    line += " eta=" + compact;
  }
  print(line + "\n");
}

void Progress::activity(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (style_.form != ProgressForm::kLive) return;
  activity_ = text;
  draw();
}

void Progress::redraw() {
  const std::lock_guard lock(mutex_);
  if (drawn_) draw();
}

void Progress::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (style_.form == ProgressForm::kJson) {
    print(nlohmann::ordered_json{{"note", terminal_safe(text)}}.dump() + "\n");
    return;
  }
  const bool line = drawn_;
  erase();
  print(terminal_safe(text) + "\n");
  if (line) draw();
}

}  // namespace troupe::observe
