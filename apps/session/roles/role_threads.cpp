#include "apps/session/roles/role_threads.hpp"

#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "kernels/ops.hpp"
#include "runtime/model/arithmetic.hpp"

namespace troupe::session {

RoleThreads::RoleThreads() : compute_("compute", &kernels::flush_denormals), blocking_("reward") {}

core::Result<core::TeamRunner*> RoleThreads::team_of(const RoleOrder& order,
                                                     const std::string& kind,
                                                     bool own_thread) {
  const RoleDevice device = device_of(order.config, kind, order.spawn.name);
  cli::Teams& owner = own_thread && device.gpu() ? own_teams_[order.spawn.name] : teams_;
  return owner.get(device.text(), {device.device.text(), order.spawn.threads});
}

std::string RoleThreads::class_of(const RoleOrder& order, core::TeamRunner& team) {
  const std::string& kind = order.spawn.kind;
  const kernels::PanelDtype dtype =
      kind == "critic" ? kernels::PanelDtype::kF32 : forward_dtype(order.config);
  const RoleDevice device = device_of(order.config, kind, order.spawn.name);
  std::string& name = arithmetic_[device.device.text() + " " + kernels::name_of(dtype)];
  if (name.empty()) name = model::arithmetic_name(team, dtype);
  return name;
}

async::DeviceThread& RoleThreads::named(const std::string& name, void (*begin)()) {
  auto& thread = named_[name];
  if (!thread) thread = std::make_unique<async::DeviceThread>(name, begin);
  return *thread;
}

}  // namespace troupe::session
