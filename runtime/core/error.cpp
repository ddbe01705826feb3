#include "runtime/core/error.hpp"

namespace troupe::core {

std::string_view error_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kConfig: return "configuration";
    case ErrorCode::kResources: return "resources";
    case ErrorCode::kData: return "data";
    case ErrorCode::kPeerLost: return "peer lost";
    case ErrorCode::kNumeric: return "numeric";
    case ErrorCode::kInterrupted: return "interrupted";
    case ErrorCode::kDeadline: return "deadline";
    case ErrorCode::kClosed: return "closed";
    case ErrorCode::kOverloaded: return "overloaded";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kConfig:
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNotFound: return 2;
    case ErrorCode::kResources:
    case ErrorCode::kOverloaded: return 3;
    case ErrorCode::kData: return 4;
    case ErrorCode::kPeerLost:
    case ErrorCode::kDeadline:
    case ErrorCode::kClosed: return 5;
    case ErrorCode::kNumeric: return 6;
    case ErrorCode::kInterrupted: return 130;
    case ErrorCode::kInternal: return 1;
  }
  return 1;
}

}  // namespace troupe::core
