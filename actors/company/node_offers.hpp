// Which kinds of roles the nodes of a company offer to run, which of them are not asked, and where
// a role is placed. Pure. Part of RolePlacement.
#pragma once

#include "actors/company/placed_role.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::company {

class NodeOffers {
 public:
  // The node has joined and offers these kinds.
  void add(const std::string& node, std::vector<std::string> kinds) {
    nodes_[node] = std::move(kinds);
    drained_.erase(node);
  }
  void remove(const std::string& node) {
    nodes_.erase(node);
    std::erase_if(strikes_, [&node](const auto& entry) { return entry.first.first == node; });
  }
  bool has(const std::string& node) const { return nodes_.contains(node); }

  // Not asked for this kind before `until`, or before it joins again.
  void strike(const std::string& node, const std::string& kind, core::TimePoint until) {
    strikes_[{node, kind}] = until;
  }
  // Not asked for anything until it joins again.
  void drain(const std::string& node) { drained_.insert(node); }
  bool is_drained(const std::string& node) const { return drained_.contains(node); }

  // True when a node other than `but_for` may be asked for this kind, now or later.
  bool has_candidate(const std::string& kind, const std::string& but_for) const;
  // The node that the role is bound to, or else the one that offers its kind and runs the fewest
  // of `roles`; "" when there is none now.
  std::string place_for(const PlacedRole& placed,
                        const PlacedRoles& roles,
                        core::TimePoint now,
                        const std::vector<std::string>& but_for = {}) const;

 private:
  // The end of a strike; the beginning of time without one. None: the node is not asked at all.
  std::optional<core::TimePoint> asked_from(const std::string& node, const std::string& kind) const;

  std::map<std::string, std::vector<std::string>> nodes_;                   // offered kinds
  std::map<std::pair<std::string, std::string>, core::TimePoint> strikes_;  // by node and kind
  std::set<std::string> drained_;                                           // nodes
};

}  // namespace troupe::actors::company
