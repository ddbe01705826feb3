#include "runtime/core/thrown.hpp"

#include "runtime/core/memory.hpp"

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

namespace troupe::core {
namespace {

constexpr const char* kLess =
    "generation takes less with a smaller rollout.kv_cache_gb (--kv-cache-memory-bytes) or "
    "rollout.max_num_seqs (--max-num-seqs), training with a smaller train.micro_tokens_max or with "
    "actor.gradient_checkpointing_enable";

// What to do about the limit that a failed call has met; "" if it was none.
std::string_view limit_behind(const std::error_code& code) {
  const bool of_system =
      code.category() == std::generic_category() || code.category() == std::system_category();
  switch (of_system ? code.value() : 0) {
    case EAGAIN:
      return "no thread or process can be started: raise `ulimit -u`, `ulimit -v` or the limit of "
             "the container, or take fewer with --train.threads (--threads)";
    case ENOMEM:
      return "there is no memory left: raise `ulimit -v` or the limit of the container";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (`ulimit -n`)";
    default:
      return "";
  }
}

}  // namespace

Error error_of(const std::exception& thrown, std::string_view where) {
  const std::string what = thrown.what();
  if (dynamic_cast<const OutOfMemory*>(&thrown) != nullptr)
    return advised(ErrorCode::kResources, what, kLess);
  if (dynamic_cast<const DeviceError*>(&thrown) != nullptr) {
    return advised(ErrorCode::kResources, "a device failed: " + what,
                   "see `nvidia-smi` and the kernel's log, then start again");
  }
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return {ErrorCode::kResources, "out of memory"};
  if (const auto* failed = dynamic_cast<const std::system_error*>(&thrown)) {
    const std::string_view limit = limit_behind(failed->code());
    if (!limit.empty()) return advised(ErrorCode::kResources, what, limit);
  }
  const Error bug{ErrorCode::kInternal, what};
  return where.empty() ? bug : bug.within(where);
}

}  // namespace troupe::core
