#include "runtime/net/gateway_records.hpp"

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
  times_.erase(
      std::ranges::min_element(times_, {}, [](const auto& one) { return one.second.back(); }));
}

bool ProvenBook::knows(const std::string& address, core::TimePoint now) const {
  const auto found = visits_.find(address);
  return found != visits_.end() &&
         (found->second.open > 0 || now - found->second.last < limits::kGatewayProof_kept);
}

void ProvenBook::enters(const std::string& address, core::TimePoint now) {
  if (!visits_.contains(address)) make_room();
  Visits& visits = visits_[address];
  ++visits.open;
  visits.last = now;
}

void ProvenBook::leaves(const std::string& address, core::TimePoint now) {
  const auto found = visits_.find(address);
  if (found == visits_.end()) return;
  --found->second.open;
  found->second.last = now;
}

void ProvenBook::make_room() {
  if (visits_.size() < kGatewayAddresses_max) return;
  const auto stalest = std::ranges::min_element(
      visits_, {}, [](const auto& one) { return std::pair(one.second.open > 0, one.second.last); });
  if (stalest->second.open == 0) visits_.erase(stalest);
}

}  // namespace troupe::net
