#include "runtime/engine/step_recordings.hpp"

#include <utility>

namespace troupe::engine {

bool StepRecordings::submit(std::int64_t size,
                            const Places& now,
                            core::TeamRunner& team,
                            const std::function<void(core::Team)>& work) {
  if (!records_) return false;
  auto& [latest, before] = recorded_[size];
  if (latest.places != now) std::swap(latest, before);
  if (latest.places != now) {
    latest = {now, nullptr};
    return false;
  }
  if (!latest.work) latest.work = team.record(work);
  records_ = latest.work != nullptr;
  if (!records_) return false;
  latest.work->submit();
  ++submitted_;
  return true;
}

}  // namespace troupe::engine
