#include "runtime/core/checked_change.hpp"

#include "runtime/core/check.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace troupe::core {

namespace {

std::atomic<bool>& wanted_checks() {
  static std::atomic<bool> wanted{std::getenv("TROUPE_CHECK_INVARIANTS") != nullptr};
  return wanted;
}

}  // namespace

bool checks_invariants() {
  return wanted_checks().load(std::memory_order_relaxed);
}

void check_invariants(bool wanted) {
  wanted_checks() = wanted;
}

void expect_whole(const std::string& broken, const std::source_location& change) noexcept {
  if (broken.empty()) return;
  // "core::Result<void> actors::TicketBook::commit(std::uint64_t, bool)"
  const std::string_view whole = change.function_name();
  const std::string_view named = whole.substr(0, whole.find('('));
  const auto begin = named.find_last_of(" *&");
  const std::string name(begin == named.npos ? named : named.substr(begin + 1));
  check_failed(change.file_name(), static_cast<int>(change.line()), ("after " + name).c_str(),
               broken.c_str());
}

}  // namespace troupe::core
