#include "runtime/plan/placement.hpp"

#include <set>

namespace troupe::plan {
namespace {

// Devices in order, without those that are taken.
class FreeDevices {
 public:
  explicit FreeDevices(const Cluster& cluster) : all_(cluster.devices()) {}
  void take(std::int64_t device) { taken_.insert(device); }
  // -1: there is none.
  std::int64_t take_next() {
    while (next_ < all_ && taken_.contains(next_))
      ++next_;
    if (next_ >= all_) return -1;
    take(next_);
    return next_;
  }
  std::int64_t left() const { return all_ - static_cast<std::int64_t>(taken_.size()); }

 private:
  const std::int64_t all_;
  std::int64_t next_ = 0;
  std::set<std::int64_t> taken_;
};

// Ranks follow on the first device that is named; engines take the named ones in turn.
std::int64_t named_device(const Role& role, std::int64_t member) {
  const auto names = static_cast<std::int64_t>(role.named.size());
  if (std::holds_alternative<TrainerFacts>(role.facts)) return role.named.front() + member;
  return role.named[static_cast<std::size_t>(member % names)];
}

core::Failure no_such_device(const Role& role, std::int64_t device, const Cluster& cluster) {
  return core::fail(core::ErrorCode::kConfig,
                    role.key + " leads to device " + std::to_string(device) + " for " + role.name +
                        ", but --cluster has " + std::to_string(cluster.devices_each) +
                        " on a node",
                    "name another" + (role.flag.empty() ? "" : " or give fewer with " + role.flag));
}

core::Failure too_few(const std::vector<Role>& roles, const Cluster& cluster) {
  std::int64_t wanted = 0;
  std::string text, flags;
  for (const Role& role : roles) {
    wanted += role.count;
    text += (text.empty() ? "" : ", ") + role.name + " " + std::to_string(role.count);
    if (role.flag.empty() || role.count == 1) continue;
    flags += (flags.empty() ? "" : ", ") + role.flag;
  }
  return core::fail(core::ErrorCode::kConfig,
                    "the roles want " + std::to_string(wanted) + " devices (" + text +
                        "), --cluster has " + std::to_string(cluster.devices()),
                    "give more devices" + (flags.empty() ? "" : ", or less with " + flags));
}

}  // namespace

MemoryUse Role::memory(const Place& place) const {
  return std::visit([&](const auto& known) { return known.memory(place); }, facts);
}

core::Result<Placement> place(const std::vector<Role>& roles, const Cluster& cluster) {
  Placement placed;
  FreeDevices free(cluster);
  for (const Role& role : roles) {
    for (std::int64_t i = 0; !role.named.empty() && i < role.count; ++i) {
      const std::int64_t device = named_device(role, i);
      if (device < 0 || device >= cluster.devices_each)
        return no_such_device(role, device, cluster);
      free.take(device);
    }
  }
  for (const Role& role : roles) {
    std::vector<std::int64_t>& devices = placed.devices.emplace_back();
    for (std::int64_t i = 0; i < role.count; ++i) {
      if (cluster.on_host()) {
        devices.push_back(0);
        continue;
      }
      devices.push_back(role.named.empty() ? free.take_next() : named_device(role, i));
      if (devices.back() < 0) return too_few(roles, cluster);
    }
  }
  placed.idle = cluster.on_host() ? 0 : free.left();
  return placed;
}

}  // namespace troupe::plan
