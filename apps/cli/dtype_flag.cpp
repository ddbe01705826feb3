#include "apps/cli/dtype_flag.hpp"

#include "kernels/ops.hpp"

namespace troupe::cli {

core::Result<kernels::PanelDtype> panel_dtype(const std::string& who,
                                              const std::string& name,
                                              const std::string& device) {
  kernels::PanelDtype dtype{};
  if (!kernels::parse_panel_dtype(name, dtype)) {
    return core::fail(core::ErrorCode::kConfig, who + ": --dtype " + name,
                      "it is f32, bf16, int8 or bf16-compute");
  }
  if (device == "cpu" && !kernels::panel_dtype_available(kernels::ops(), dtype)) {
    return core::fail(core::ErrorCode::kConfig,
                      who + ": --dtype " + name +
                          " needs a processor with AVX512-bf16 (level avx512), "
                          "and the level here is " +
                          kernels::ops().name,
                      "take --dtype bf16");
  }
  return dtype;
}

core::Result<model::StorageDtype> storage_dtype(const std::string& name) {
  if (name == "f32") return model::StorageDtype::kF32;
  if (name == "bf16") return model::StorageDtype::kBf16;
  return core::fail(core::ErrorCode::kConfig, "--dtype " + name + " is not offered",
                    "choose f32 or bf16");
}

}  // namespace troupe::cli
