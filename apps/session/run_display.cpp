#include "apps/session/run_display.hpp"

#include "apps/session/activity_words.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

namespace troupe::session {

RunDisplay::RunDisplay(const std::string& format,
                       const core::Clock& clock,
                       std::uint64_t done,
                       std::uint64_t updates)
    : timer_(clock),
      progress_(stdout, observe::detect_style(format, stdout), clock, done, updates) {
  if (progress_.live()) ticker_ = std::jthread([this](std::stop_token stop) { tick(stop); });
}

void RunDisplay::tick(std::stop_token stop) {
  constexpr std::chrono::seconds kTick{1};
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  while (!ended.wait_for(lock, stop, kTick, [] { return false; }) && !stop.stop_requested())
    progress_.redraw();
}

void RunDisplay::begin(const std::string& phase) {
  timer_.begin(phase);
  progress_.activity(activity_words(phase));
}

void RunDisplay::on_groups(const actors::GroupCounts& counts) {
  const std::string phase = timer_.current();
  if (phase != "generate" && phase != "score") return;
  // While all samples are there, it is the scores that training waits for.
  const std::string_view awaited = awaited_phase(counts);
  if (phase != awaited) timer_.begin(awaited);
  progress_.activity(activity_words(counts));
}

std::vector<std::pair<std::string, double>> RunDisplay::phases() {
  timer_.end();
  return timer_.totals();
}

}  // namespace troupe::session
