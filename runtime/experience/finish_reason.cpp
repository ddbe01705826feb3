#include "runtime/experience/finish_reason.hpp"

namespace troupe::experience {

std::string_view finish_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEos: return "eos";
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAborted: return "aborted";
  }
  return "unknown";
}

}  // namespace troupe::experience
