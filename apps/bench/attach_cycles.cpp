#include "apps/bench/attach_cycles.hpp"

#include "apps/bench/figures.hpp"

#include <signal.h>

#include <chrono>
#include <thread>

namespace troupe::app {
namespace {

constexpr double kReweight_share = 0.4, kKill_share = 0.35, kOverlap_share = 0.25;
constexpr std::uint64_t kPause_ms_max = 150;  // between the first score and what comes next

}  // namespace

core::Result<AttachCounts> AttachCycles::go_through(std::uint64_t cycles) {
  counts_ = {};
  std::optional<Guest> staying;
  for (std::uint64_t cycle = 0; cycle < cycles; ++cycle) {
    TROUPE_TRY_ASSIGN(guest, attach(cycle));
    std::this_thread::sleep_for(std::chrono::milliseconds(rng_.next_below(kPause_ms_max)));
    // Every kind comes up in a short play, too.
    if (cycle % 5 == 1 || drawn(kReweight_share)) TROUPE_TRY(reweight(guest.name));
    if (staying) {
      TROUPE_TRY(end(std::move(*staying)));
      staying.reset();
    }
    if (cycle % 5 == 3 || drawn(kOverlap_share)) {
      staying.emplace(std::move(guest));
      ++counts_.overlaps;
    } else {
      TROUPE_TRY(end(std::move(guest)));
    }
  }
  if (staying) TROUPE_TRY(end(std::move(*staying)));
  return std::move(counts_);
}

core::Result<AttachCycles::Guest> AttachCycles::attach(std::uint64_t cycle) {
  Guest guest;
  guest.name = lab_reward(cycle);
  const std::int64_t begin = clock_ns();
  TROUPE_TRY_ASSIGN(
      process, LoggedProcess::start(
                   "", {"attach", "reward", "--join", files_.run(), "--name", guest.name, "--http",
                    server_.url(guest.name), "--weight", std::to_string(1 + rng_.next_below(9))},
                   files_ / ("attach-" + guest.name + ".log")));
  guest.process = std::move(process);
  std::optional<std::int64_t> first, in;
  const bool scored = holds_within(limit_s_, [&] {
    if (!in && guest.process.output().find("scores from update") != std::string::npos)
      in = clock_ns();
    first = server_.first_ns(guest.name);
    return first.has_value() || !guest.process.running();
  });
  if (!scored || !first) {
    return core::fail(core::ErrorCode::kPeerLost,
                      "reward " + guest.name + " scored nothing within " +
                          std::to_string(limit_s_) + " s; it printed: " + guest.process.output() +
                          "\nthe run printed:\n" + run_.output());
  }
  counts_.first_score_ms.push_back(static_cast<double>(*first - begin) * 1e-6);
  counts_.attached_ms.push_back(static_cast<double>(in.value_or(*first) - begin) * 1e-6);
  return guest;
}

core::Result<void> AttachCycles::reweight(const std::string& name) {
  const std::string weight = std::to_string(1 + rng_.next_below(9));
  TROUPE_TRY(run_command_logged(
      {"re-weight", "reward", "--join", files_.run(), "--name", name, "--weight", weight},
      files_ / ("re-weight-" + name + ".log"), limit_s_));
  ++counts_.reweights;
  return {};
}

core::Result<void> AttachCycles::end(Guest guest) {
  if (counts_.kills + counts_.detaches == 2 || drawn(kKill_share)) {
    ++counts_.kills;
    guest.process.signal(SIGKILL);
    return {};
  }
  ++counts_.detaches;
  return detach(guest);
}

core::Result<void> AttachCycles::detach(Guest& guest) {
  TROUPE_TRY(run_command_logged({"detach", "reward", "--join", files_.run(), "--name", guest.name},
                             files_ / ("detach-" + guest.name + ".log"), limit_s_));
  const auto status = guest.process.wait(limit_s_);
  if (status == 0) return {};
  return core::fail(
      core::ErrorCode::kPeerLost,
      "reward " + guest.name + " was detached, but its process " +
          (status ? "ended with status " + std::to_string(*status) : std::string("goes on")) +
          ": " + guest.process.output());
}

}  // namespace troupe::app
