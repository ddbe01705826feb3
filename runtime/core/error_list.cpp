#include "runtime/core/error_list.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <utility>

namespace troupe::core {
namespace {

// Separates two messages where an error is printed as it is.
constexpr std::string_view kBetween = "\nerror: ";

}  // namespace

void ErrorList::add(Error error) {
  if (!error.mistakes.empty()) {
    for (Error& mistake : error.mistakes)
      add(std::move(mistake));
    return;
  }
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
  if (errors_.size() == 1) return all;
  all.advice_at = 0;
  all.mistakes = errors_;
  if (more_ > 0) all.mistakes.push_back({all.code, std::to_string(more_) + " more like these"});
  for (std::size_t i = 1; i < all.mistakes.size(); ++i)
    all.message += std::string(kBetween) + all.mistakes[i].message;
  return all;
}

Result<void> ErrorList::result() const {
  if (errors_.empty()) return {};
  return fail(error());
}

std::vector<Error> single_errors(const Error& error) {
  return error.mistakes.empty() ? std::vector<Error>{error} : error.mistakes;
}

}  // namespace troupe::core
