#include "apps/cli/build_facts.hpp"

#include "runtime/model/arithmetic.hpp"

#include <future>

namespace troupe::cli {

const std::string& processor_arithmetic() {
  // On a thread of its own, since it changes how the thread treats denormals.
  static const std::string name = std::async(std::launch::async, [] {
                                    core::SerialTeam team;
                                    return model::arithmetic_name(team, kernels::PanelDtype::kF32);
                                  }).get();
  return name;
}

std::string build_version() {
  return TROUPE_VERSION;
}

}  // namespace troupe::cli
