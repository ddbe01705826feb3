#include "apps/cli/placement.hpp"

#include "apps/cli/system_facts.hpp"
#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "kernels/dispatch.hpp"
#include "runtime/async/cpu_pool.hpp"

namespace troupe::cli {

using core::TeamRunner;

Result<std::unique_ptr<TeamRunner>> make_team(const std::string& what, const Placement& placement) {
  const auto name = core::parse_device(placement.device);
  if (!name) return core::fail(name.error().within(what));
  if (!name->gpu) {
    return std::unique_ptr<TeamRunner>(
        std::make_unique<async::CpuPool>(cores_for(placement.threads), &kernels::flush_denormals));
  }
  auto device = kernels::cuda::open_device(name->ordinal);
  if (!device) return core::fail(device.error().within(what));
  return std::unique_ptr<TeamRunner>(
      std::make_unique<kernels::cuda::DeviceTeam>(std::move(*device)));
}

Result<void> check_device(const std::string& what, const core::DeviceName& device) {
  if (!device.gpu) return {};
  if (auto found = kernels::cuda::find_device(device.ordinal); !found)
    return core::fail(found.error().within(what));
  return {};
}

Result<TeamRunner*> Teams::get(const std::string& what, const Placement& placement) {
  const auto name = core::parse_device(placement.device);
  if (!name) return core::fail(name.error().within(what));
  std::unique_ptr<TeamRunner>& team = made_[name->text()];
  if (!team) TROUPE_TRY_SET(team, make_team(what, placement));
  return team.get();
}

Result<std::unique_ptr<TeamRunner>> make_team(const Placement& placement) {
  kernels::flush_denormals();
  return make_team("--device " + placement.device, placement);
}

}  // namespace troupe::cli
