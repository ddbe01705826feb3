// Members take unit after unit until the time is up; a unit that was taken is finished.
#include "runtime/model/weight_packer.hpp"

#include <chrono>

namespace troupe::model {

WeightPacker::WeightPacker(PackedWeights& out, const float* flat, core::Version version)
    : out_(out), flat_(flat), version_(version) {}

bool WeightPacker::advance(core::TeamRunner& team, core::Duration budget) {
  if (done_) return true;
  const auto end = std::chrono::steady_clock::now() + budget;
  const std::int64_t units = out_.fill_units();
  team.run([&](core::Team) {
    do {
      const std::int64_t unit = next_.fetch_add(1, std::memory_order_relaxed);
      if (unit >= units) return;
      out_.fill_unit(unit, flat_);
    } while (std::chrono::steady_clock::now() < end);
  });
  if (next_.load(std::memory_order_relaxed) < units) return false;
  out_.set_version(version_);
  done_ = true;
  return true;
}

}  // namespace troupe::model
