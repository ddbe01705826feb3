// Why a sample ended: at the model's end token, at a stop string or stop token of the request, at
// the length limit, or because it was aborted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::experience {

enum class FinishReason : std::uint8_t { kEos, kStop, kLength, kAborted };

// The name in rollout files and messages.
constexpr std::string_view finish_name(FinishReason reason) {
  constexpr std::array<std::string_view, 4> kNames = {"eos", "stop", "length", "aborted"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace troupe::experience
