// The flag --dtype (how weights are stored) of `generate`, `chat`, `serve` and benchmarks: its help
// text and its parser. Any thread.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"

#include <string>

namespace troupe::cli {

inline constexpr const char* kDtypeHelp =
    "how weights are stored: f32, bf16, int8, or bf16-compute (products of bf16 pairs, where the "
    "processor has them)";

// Error kConfig: there is no dtype `name`, or `device` is "cpu" and the active kernel level does
// not compute in it; a GPU computes in all. `who` is the command, for the message.
core::Result<kernels::PanelDtype> panel_dtype(const std::string& who,
                                              const std::string& name,
                                              const std::string& device = "cpu");

// The type of weights in a file to write: f32 or bf16. Error kConfig: `--dtype` is another.
core::Result<model::StorageDtype> storage_dtype(const std::string& name);

}  // namespace troupe::cli
