#include "runtime/net/minute_book.hpp"

#include "runtime/net/limits.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::net {
namespace {
using limits::kGatewayAddresses_max;
constexpr std::chrono::minutes kWindow{1};
}  // namespace

bool MinuteBook::full(const std::string& key, core::TimePoint now) const {
  const auto found = times_.find(key);
  return found != times_.end() && found->second.size() >= most_ &&
         now - found->second.front() < kWindow;
}

bool MinuteBook::add(const std::string& key, core::TimePoint now) {
  const bool before = full(key, now);
  if (!times_.contains(key)) make_room(now);
  auto& times = times_[key];
  times.push_back(now);
  if (times.size() > most_) times.pop_front();
  return !before && full(key, now);
}

void MinuteBook::make_room(core::TimePoint now) {
  if (times_.size() < kGatewayAddresses_max) return;
  std::erase_if(times_, [now](const auto& one) { return now - one.second.back() >= kWindow; });
  if (times_.size() < kGatewayAddresses_max) return;
  times_.erase(std::min_element(times_.begin(), times_.end(), [](const auto& a, const auto& b) {
    return a.second.back() < b.second.back();
  }));
}

}  // namespace troupe::net
