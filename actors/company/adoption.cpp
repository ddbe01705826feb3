#include "actors/company/adoption.hpp"

#include "runtime/core/ids.hpp"

namespace troupe::actors::company {

bool Adoption::is_old(std::uint64_t epoch) const {
  return epoch != 0 && core::generation_of(epoch) < generation_;
}

bool Adoption::policy_is_new(const RolePlacement& placement) const {
  const PlacedRole* const policy = placement.find("policy/0");
  return policy != nullptr && policy->epoch != 0 && !is_old(policy->epoch);
}

std::vector<HostedRole> Adoption::keep(const Join& join, RolePlacement& placement) const {
  std::vector<HostedRole> kept;
  if (join.config != config_) return kept;
  for (const HostedRole& hosted : join.hosted) {
    if (hosted.run_id != run_id_) continue;
    if (hosted.kind == "generator" && policy_is_new(placement)) continue;
    if (placement.adopt(hosted.name, join.name, hosted.epoch)) kept.push_back(hosted);
  }
  return kept;
}

std::string Adoption::name_generator(const Join& join, const RolePlacement& placement) {
  const auto is_free = [&placement](const std::string& name) {
    return placement.find(name) == nullptr;
  };
  for (const HostedRole& hosted : join.hosted) {
    const bool ours = hosted.kind == "generator" && hosted.run_id == run_id_;
    if (ours && is_old(hosted.epoch) && is_free(hosted.name)) return hosted.name;
  }
  for (;;) {  // no name is given twice
    const std::string name = "generator/" + std::to_string(next_generator_++);
    if (is_free(name)) return name;
  }
}

std::vector<HostedRole> Adoption::leftovers(const RolePlacement& placement) const {
  std::vector<HostedRole> left;
  if (!policy_is_new(placement)) return left;
  for (const auto& [name, placed] : placement.roles()) {
    if (placed.kind == "generator" && is_old(placed.epoch))
      left.push_back({placed.kind, name, run_id_, placed.epoch});
  }
  return left;
}

}  // namespace troupe::actors::company
