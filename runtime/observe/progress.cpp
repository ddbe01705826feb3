#include "runtime/observe/progress.hpp"

#include "runtime/observe/terminal_text.hpp"

#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace troupe::observe {
namespace {

struct Named {
  const char* label;
  const char* key;
  const char* metric;
  const char* format;
  const char* unit;
  bool of_company = false;  // stands on the block's second line of figures
};

// The metrics that are shown, in this order. If a row has no kl/ref, KL is its kl/rollout_train.
constexpr Named kShown[] = {
    {"reward", "reward", "reward/mean", "%.3f", ""},
    {"loss", "loss", "policy/loss", "%.4f", ""},
    {"right", "accuracy", "rewards/accuracies", "%.3f", ""},
    {"kl", "kl", "kl/ref", "%.5f", ""},
    {"tokens/s", "tokens_per_s", "perf/tokens_per_s", "%.0f", ""},
    {"step", "step_s", "time/step", "%.3g", " s"},
    {"generators up", "generators", "async/generators", "%.0f", "", true},
    {"age of tokens", "age", "async/staleness_mean", "%.2g", " updates", true},
    {"response", "length", "response/length_mean", "%.0f", " tokens", true},
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
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

bool set_in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::size_t terminal_columns(std::FILE* out) {
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  char text[48];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

ProgressForm choose_form(std::string_view format, std::FILE* out) {
  if (format == "json") return ProgressForm::kJson;
  if (format == "plain" || ::isatty(::fileno(out)) == 0) return ProgressForm::kLines;
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) == "dumb" ? ProgressForm::kLines
                                                             : ProgressForm::kLive;
}

ProgressStyle detect_style(std::string_view format, std::FILE* out) {
  const ProgressForm form = choose_form(format, out);
  const bool live = form == ProgressForm::kLive;
  return {form, live && !set_in_environment("NO_COLOR"), live ? terminal_columns(out) : 80};
}

Progress::Progress(std::FILE* out,
                   ProgressStyle style,
                   const core::Clock& clock,
                   std::uint64_t first_step,
                   std::uint64_t steps)
    : out_(out), style_(style), clock_(clock), steps_(steps), start_(clock.now()) {
  shown_.step = first_step;
  mark(first_step);
}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  if (style_.form != ProgressForm::kLive || drawn_lines_ == 0) return;
  activity_.clear();
  draw();
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
  if (drawn_lines_ == 0) return;
  print("\x1b[" + std::to_string(drawn_lines_) + "A\r\x1b[J");
  drawn_lines_ = 0;
}

void Progress::draw() {
  erase();
  const double share =
      steps_ == 0 ? 1.0 : static_cast<double>(shown_.step) / static_cast<double>(steps_);
  constexpr std::size_t kBar = 24;
  const auto filled = std::min(kBar, static_cast<std::size_t>(share * kBar));
  std::string head = "step " + std::to_string(shown_.step) + "/" + std::to_string(steps_) + "  [" +
                     std::string(filled, '#') + std::string(kBar - filled, '.') + "]";
  head += "  " + elapsed_text();
  if (const std::string eta = eta_text(); !eta.empty()) head += ", ETA " + eta;
  std::string block;
  const auto add = [&](const std::string& line, bool dim) {
    if (line.empty()) return;
    const std::string text = terminal_line(line, style_.columns - 1);
    block += dim ? "\x1b[2m" + text + "\x1b[0m\n" : text + "\n";
    ++drawn_lines_;
  };
  add(head, false);
  add(shown_.facts, false);
  add(shown_.company, false);
  add(activity_, style_.colour);
  print(block);
}

void Progress::update(const MetricRow& row) {
  const std::lock_guard lock(mutex_);
  shown_ = {row.step, "", ""};
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
  std::string line = "step=" + std::to_string(row.step) + "/" + std::to_string(steps_);
  for (const Named& named : kShown) {
    const auto value = value_of(row, named);
    if (!value) continue;
    const std::string text = number(named.format, *value);
    line += std::string(" ") + named.key + "=" + text;
    std::string& place = named.of_company ? shown_.company : shown_.facts;
    place += (place.empty() ? "" : "   ") + std::string(named.label) + " " + text + named.unit;
  }
  if (style_.form == ProgressForm::kLive) {
    draw();
    return;
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
  if (drawn_lines_ > 0) draw();
}

void Progress::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (style_.form == ProgressForm::kJson) {
    print(nlohmann::ordered_json{{"note", terminal_safe(text)}}.dump() + "\n");
    return;
  }
  const bool block = drawn_lines_ > 0;
  erase();
  print(terminal_safe(text) + "\n");
  if (block) draw();
}

}  // namespace troupe::observe
