#include "runtime/model/weight_packer.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::model {
namespace {

// Units to enqueue before waiting for a device: a few hundred microseconds of copying on a GPU.
// Enqueueing returns at once, so without the wait a slice would run far beyond its budget.
constexpr std::int64_t kUnitsAtOnce = 512;

}  // namespace

WeightPacker::WeightPacker(PackedWeights& out, const float* flat, core::Version version, bool here)
    : out_(out), flat_(flat), version_(version), here_(here) {}

bool WeightPacker::advance(core::TeamRunner& team, core::Duration budget) {
  if (done_) return true;
  const auto end = std::chrono::steady_clock::now() + budget;
  const std::int64_t units = out_.fill_units();
  core::Memory& memory = out_.memory();
  const std::int64_t at_once = memory.on_host() ? 1 : kUnitsAtOnce;
  team.run([&](core::Team) {
    do {
      const std::int64_t first = next_.fetch_add(at_once, std::memory_order_relaxed);
      if (first >= units) return;
      for (std::int64_t unit = first; unit < std::min(first + at_once, units); ++unit)
        out_.fill_unit(unit, flat_, here_);
      memory.wait();
    } while (std::chrono::steady_clock::now() < end);
  });
  if (next_.load(std::memory_order_relaxed) < units) return false;
  out_.set_version(version_);
  done_ = true;
  return true;
}

}  // namespace troupe::model
