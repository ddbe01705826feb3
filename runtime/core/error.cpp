#include "runtime/core/error.hpp"

#include <iterator>

namespace troupe::core {
namespace {

struct Meaning {
  std::string_view name;
  int exit_status;
};

// In the order of ErrorCode.
constexpr Meaning kMeanings[] = {
    {"invalid argument", 2}, {"configuration", 2}, {"resources", 3},     {"data", 4},
    {"peer lost", 5},        {"numeric", 6},       {"interrupted", 130}, {"deadline", 5},
    {"closed", 5},           {"overloaded", 3},    {"unsupported", 2},   {"not found", 2},
    {"internal", 1},         {"disk full", 3},
};
static_assert(std::size(kMeanings) == kErrorCodes);

// An unknown code counts as a bug.
const Meaning& meaning_of(ErrorCode code) {
  const auto place = static_cast<std::size_t>(code);
  return kMeanings[place < std::size(kMeanings) ? place
                                                : static_cast<std::size_t>(ErrorCode::kInternal)];
}

}  // namespace

std::string_view error_name(ErrorCode code) noexcept {
  return meaning_of(code).name;
}

int exit_status(ErrorCode code) noexcept {
  return meaning_of(code).exit_status;
}

}  // namespace troupe::core
