#include "actors/company/node_offers.hpp"

#include "runtime/core/find_value.hpp"

#include <algorithm>

namespace troupe::actors::company {

std::optional<core::TimePoint> NodeOffers::asked_from(const std::string& node,
                                                      const std::string& kind) const {
  const auto* const kinds = core::find_value(nodes_, node);
  if (is_drained(node) || kinds == nullptr || std::ranges::count(*kinds, kind) == 0)
    return std::nullopt;
  const core::TimePoint* const struck = core::find_value(strikes_, {node, kind});
  return struck == nullptr ? core::TimePoint::min() : *struck;
}

bool NodeOffers::has_candidate(const std::string& kind, const std::string& but_for) const {
  return std::ranges::any_of(nodes_, [&](const auto& entry) {
    const auto from = asked_from(entry.first, kind);
    return entry.first != but_for && from && *from != core::TimePoint::max();
  });
}

std::string NodeOffers::place_for(const PlacedRole& placed,
                                  const PlacedRoles& roles,
                                  core::TimePoint now,
                                  const std::vector<std::string>& but_for) const {
  std::string best;
  std::ptrdiff_t fewest = 0;
  for (const auto& [node, kinds] : nodes_) {
    if (!placed.bound.empty() && placed.bound != node) continue;
    if (std::ranges::count(but_for, node) > 0) continue;
    const auto from = asked_from(node, placed.kind);
    if (!from || now < *from) continue;
    const auto holds = std::ranges::count_if(roles, [&](const auto& other) {
      return other.second.node == node && other.second.state != RoleState::kWanted;
    });
    if (best.empty() || holds < fewest) {
      best = node;
      fewest = holds;
    }
  }
  return best;
}

}  // namespace troupe::actors::company
