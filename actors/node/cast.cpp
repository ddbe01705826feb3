// Placement and back-off.
#include "actors/node/cast.hpp"

#include "actors/limits.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

// Lost too often in a short time.
bool is_worn(const Part& part, core::TimePoint now) {
  const auto recent = std::count_if(part.losses.begin(), part.losses.end(), [&](auto when) {
    return now - when <= limits::kRestartWindow;
  });
  return static_cast<std::uint64_t>(recent) >= limits::kRestarts_max;
}

}  // namespace

void Cast::want(std::string kind, std::string name, std::string bound, bool guest) {
  Part part;
  part.kind = std::move(kind);
  part.name = name;
  part.bound = std::move(bound);
  part.guest = guest;
  parts_.emplace(std::move(name), std::move(part));
}

bool Cast::drop(const std::string& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return false;
  const bool played = found->second.state != PartState::kWanted;
  parts_.erase(found);
  return played;
}

void Cast::node_in(const std::string& node, std::vector<std::string> kinds) {
  nodes_[node] = std::move(kinds);
}

std::vector<std::string> Cast::node_out(const std::string& node,
                                        const core::Error& cause,
                                        core::TimePoint now) {
  nodes_.erase(node);
  std::erase_if(strikes_, [&node](const auto& entry) { return entry.first.first == node; });
  std::vector<std::string> gone;
  for (auto& [name, part] : parts_) {
    if (part.node != node || part.state == PartState::kWanted) continue;
    const bool was_up = part.state == PartState::kUp;
    lost(name, part.epoch, cause, now);
    if (was_up) gone.push_back(name);
  }
  return gone;
}

void Cast::strike(const std::string& node, const std::string& kind, core::TimePoint until) {
  strikes_[{node, kind}] = until;
}

bool Cast::has_candidate(const std::string& kind) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const auto& [node, kinds] = entry;
    const auto struck = strikes_.find({node, kind});
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end() &&
           (struck == strikes_.end() || struck->second != core::TimePoint::max());
  });
}

// The node bound to the part, or the one that offers its kind and plays fewest parts.
std::string Cast::place_for(const Part& part, core::TimePoint now) const {
  std::string best;
  std::size_t fewest = 0;
  for (const auto& [node, kinds] : nodes_) {
    if (!part.bound.empty() && part.bound != node) continue;
    if (std::find(kinds.begin(), kinds.end(), part.kind) == kinds.end()) continue;
    const auto struck = strikes_.find({node, part.kind});
    if (struck != strikes_.end() && now < struck->second) continue;
    const auto plays = static_cast<std::size_t>(
        std::count_if(parts_.begin(), parts_.end(), [&](const auto& other) {
          return other.second.node == node && other.second.state != PartState::kWanted;
        }));
    if (best.empty() || plays < fewest) {
      best = node;
      fewest = plays;
    }
  }
  return best;
}

std::vector<Part> Cast::start_due(core::TimePoint now) {
  std::vector<Part> due;
  for (auto& [name, part] : parts_) {
    if (part.state != PartState::kWanted || now < part.not_before) continue;
    const std::string node = place_for(part, now);
    if (node.empty()) continue;
    part.state = PartState::kStarting;
    part.node = node;
    ++part.epoch;
    due.push_back(part);
  }
  return due;
}

bool Cast::up(const std::string& name, std::uint64_t epoch) {
  const auto found = parts_.find(name);
  if (found == parts_.end() || found->second.epoch != epoch ||
      found->second.state != PartState::kStarting) {
    return false;
  }
  found->second.state = PartState::kUp;
  return true;
}

bool Cast::stop(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  const auto found = parts_.find(name);
  if (found == parts_.end() || found->second.epoch != epoch ||
      found->second.state != PartState::kUp) {
    return false;
  }
  found->second.state = PartState::kStopping;
  found->second.last_cause = cause.message;
  return true;
}

bool Cast::lost(const std::string& name,
                std::uint64_t epoch,
                const core::Error& cause,
                core::TimePoint now) {
  const auto found = parts_.find(name);
  if (found == parts_.end() || found->second.epoch != epoch ||
      found->second.state == PartState::kWanted) {
    return false;
  }
  Part& part = found->second;
  if (part.state != PartState::kStopping) part.last_cause = cause.message;
  part.state = PartState::kWanted;
  part.node.clear();
  part.losses.push_back(now);
  while (!part.losses.empty() && now - part.losses.front() > limits::kRestartWindow) {
    part.losses.pop_front();
  }
  // 100 ms after the first loss, doubling.
  const auto doublings = std::min<std::size_t>(part.losses.size() - 1, 6);
  const auto pause =
      std::min<core::Duration>(limits::kRestartAfter * (1 << doublings), limits::kRestartAfter_max);
  part.not_before = now + (is_worn(part, now) ? limits::kRestartRest : pause);
  return true;
}

void Cast::retire(const std::string& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return;
  found->second.state = PartState::kWanted;
  found->second.node.clear();
}

std::optional<Part> Cast::hopeless(core::TimePoint now) const {
  const bool a_generator_holds =
      std::any_of(parts_.begin(), parts_.end(), [now](const auto& entry) {
        return entry.second.kind == "generator" && !is_worn(entry.second, now);
      });
  for (const auto& [name, part] : parts_) {
    if (part.bound.empty() || part.guest || !is_worn(part, now)) continue;
    if (part.kind != "generator" || !a_generator_holds) return part;
  }
  return std::nullopt;
}

const Part* Cast::find(const std::string& name) const {
  const auto found = parts_.find(name);
  return found == parts_.end() ? nullptr : &found->second;
}

bool Cast::any_up(const std::string& kind) const {
  return std::any_of(parts_.begin(), parts_.end(), [&kind](const auto& entry) {
    return entry.second.kind == kind && entry.second.state == PartState::kUp;
  });
}

bool Cast::all_up(const std::string& kind) const {
  bool any = false;
  for (const auto& [name, part] : parts_) {
    if (part.kind != kind) continue;
    if (part.state != PartState::kUp) return false;
    any = true;
  }
  return any;
}

}  // namespace troupe::actors
