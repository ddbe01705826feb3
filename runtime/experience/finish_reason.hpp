// Why a sample ended.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::experience {

enum class FinishReason : std::uint8_t { kEos, kStop, kLength, kAborted };

// "eos", "stop", "length", "aborted": as rollouts and users read it.
std::string_view finish_name(FinishReason reason) noexcept;

}  // namespace troupe::experience
