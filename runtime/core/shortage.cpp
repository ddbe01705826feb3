#include "runtime/core/shortage.hpp"

#include "runtime/core/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace troupe::core {
namespace {

std::atomic<std::terminate_handler> handler_before{nullptr};

// What to do about the limit that a failed call has met; "" if it was none.
std::string_view limit_behind(const std::error_code& code) noexcept {
  const bool of_system =
      code.category() == std::generic_category() || code.category() == std::system_category();
  switch (of_system ? code.value() : 0) {
    case EAGAIN:
      return "no thread or process can be started: raise `ulimit -u`, `ulimit -v` or the limit of "
             "the container, or take fewer with --train.threads (--threads)";
    case ENOMEM:
      return kMoreMemory;
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (`ulimit -n`)";
    default:
      return "";
  }
}

[[noreturn]] void on_terminate() {
  if (std::current_exception()) {
    try {
      throw;
    } catch (const std::exception& thrown) {
      if (const Shortage shortage = shortage_of(thrown)) end_for_want(shortage);
    } catch (...) {
    }
  }
  if (const auto before = handler_before.load()) before();
  std::abort();
}

}  // namespace

Shortage shortage_of(const std::exception& thrown) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return {"out of memory", kMoreMemory};
  std::error_code code;
  if (const auto* failed = dynamic_cast<const std::system_error*>(&thrown)) code = failed->code();
  const std::string_view advice = limit_behind(code);
  if (advice.empty()) return {};
  return {thrown.what(), advice};
}

void end_for_want(const Shortage& of) noexcept {
  std::array<char, 1024> line{};
  std::size_t size = 0;
  for (const std::string_view part :
       {std::string_view("error: "), of.what, std::string_view("\n  hint: "), of.advice}) {
    const std::size_t fits = std::min(part.size(), line.size() - 1 - size);
    std::memcpy(line.data() + size, part.data(), fits);
    size += fits;
  }
  line[size++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), size);
  ::_exit(exit_status(ErrorCode::kResources));
}

void end_for_want_on_terminate() noexcept {
  const auto before = std::set_terminate(&on_terminate);
  if (before != &on_terminate) handler_before = before;
}

}  // namespace troupe::core
