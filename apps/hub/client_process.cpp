#include "apps/hub/client_process.hpp"

#include "apps/hub/client_source.hpp"
#include "apps/hub/limits.hpp"
#include "runtime/names/hub_cache.hpp"

#include <utility>

namespace troupe::hub {

Result<ClientProcess> ClientProcess::start(Json job) {
  TROUPE_TRY_ASSIGN(program, side::SideProgram::start(
                                 {.what = "the hub's client",
                                  .text = kClientSource,
                                  .job = std::move(job),
                                  .line_bytes_max = limits::kHubLine_bytes_max,
                                  // Both sides must mean the same cache.
                                  .environment = {"HF_HUB_CACHE=" + names::hub_cache().string()}}));
  return ClientProcess(std::move(program));
}

Result<std::optional<Json>> ClientProcess::next(core::Duration limit) {
  if (auto there = program_.next()) return there;
  program_.listen(limit);
  if (auto there = program_.next()) return there;
  if (program_.is_over() || program_.has_endless_line()) {
    return program_.lost();
  }
  if (program_.silence() > limits::kHubSilence) {
    return fail(ErrorCode::kDeadline, "the hub's client gives no sign of life",
                "the same command goes on");
  }
  return std::optional<Json>();
}

}  // namespace troupe::hub
