// Names of the engine's enums.
#include "runtime/engine/types.hpp"

namespace troupe::engine {

std::string_view finish_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAborted:
      return "aborted";
  }
  return "unknown";
}

}  // namespace troupe::engine
