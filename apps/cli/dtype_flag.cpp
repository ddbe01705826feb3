#include "apps/cli/dtype_flag.hpp"

#include "kernels/ops.hpp"

namespace troupe::app {

core::Result<kernels::PanelDtype> panel_dtype(const std::string& who,
                                              const std::string& name,
                                              const std::string& device) {
  kernels::PanelDtype dtype{};
  if (!kernels::parse_panel_dtype(name, dtype)) {
    return core::fail(core::ErrorCode::kConfig,
                      who + ": --dtype " + name + "; it is f32, bf16, int8 or bf16-compute");
  }
  if (device == "cpu" && !kernels::panel_dtype_available(kernels::ops(), dtype)) {
    return core::fail(core::ErrorCode::kConfig,
                      who + ": --dtype " + name +
                          " needs a processor with AVX512-bf16 (level avx512), "
                          "and the level here is " +
                          kernels::ops().name + "; take --dtype bf16");
  }
  return dtype;
}

}  // namespace troupe::app
