#include "runtime/core/error_list.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>
#include <utility>

namespace troupe::core {
namespace {

// Separates two messages. Still readable if an error is printed as it is.
constexpr std::string_view kBetween = "\nerror: ";

}  // namespace

void ErrorList::add(Error error) {
  const bool known = std::any_of(errors_.begin(), errors_.end(), [&](const Error& other) {
    return other.message == error.message;
  });
  if (known) return;
  if (errors_.size() == kShown_max) {
    ++more_;
  } else {
    errors_.push_back(std::move(error));
  }
}

Error ErrorList::error() const {
  TROUPE_CHECK(!errors_.empty(), "an error is there to be told");
  Error all = errors_.front();
  for (std::size_t i = 1; i < errors_.size(); ++i)
    all.message += std::string(kBetween) + errors_[i].message;
  if (more_ > 0) {
    all.message += std::string(kBetween) + std::to_string(more_) + " more like these";
  }
  return all;
}

Result<void> ErrorList::result() const {
  if (errors_.empty()) return {};
  return fail(error());
}

std::vector<std::string_view> single_messages(std::string_view message) {
  return split(message, kBetween);
}

}  // namespace troupe::core
