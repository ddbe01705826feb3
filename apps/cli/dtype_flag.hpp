// The flag --dtype of the commands that generate: its help text and its parser. Any thread.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/result.hpp"

#include <string>

namespace troupe::app {

inline constexpr const char* kDtypeHelp =
    "how weights are stored: f32, bf16, int8, or bf16-compute (products of bf16 pairs, where the "
    "processor has them)";

// Error: no dtype of that name, or one that this processor does not compute at speed where `device`
// is the processor; a GPU has all. `who` is the command, for the message.
core::Result<kernels::PanelDtype> panel_dtype(const std::string& who,
                                              const std::string& name,
                                              const std::string& device = "cpu");

}  // namespace troupe::app
