// Sliding windows of failures by address.
#include "runtime/net/failure_book.hpp"

#include "runtime/core/limits.hpp"

#include <algorithm>

namespace troupe::net {
namespace {
using core::limits::kDoorAddresses_max;
using core::limits::kDoorFailures_max;
constexpr std::chrono::minutes kWindow{1};
}  // namespace

bool FailureBook::blocked(const std::string& address, core::TimePoint now) const {
  const auto found = failures_.find(address);
  return found != failures_.end() && found->second.size() >= kDoorFailures_max &&
         now - found->second.front() < kWindow;
}

bool FailureBook::failed(const std::string& address, core::TimePoint now) {
  const bool before = blocked(address, now);
  if (!failures_.contains(address)) make_room(now);
  auto& times = failures_[address];
  times.push_back(now);
  if (times.size() > kDoorFailures_max) times.pop_front();
  return !before && blocked(address, now);
}

void FailureBook::make_room(core::TimePoint now) {
  if (failures_.size() < kDoorAddresses_max) return;
  std::erase_if(failures_, [now](const auto& one) { return now - one.second.back() >= kWindow; });
  if (failures_.size() < kDoorAddresses_max) return;
  failures_.erase(std::min_element(
      failures_.begin(), failures_.end(),
      [](const auto& a, const auto& b) { return a.second.back() < b.second.back(); }));
}

}  // namespace troupe::net
