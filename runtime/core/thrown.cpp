#include "runtime/core/thrown.hpp"

#include "runtime/core/memory.hpp"

#include <new>
#include <string>

namespace troupe::core {
namespace {

constexpr const char* kLess =
    "generation takes less with a smaller rollout.kv_cache_gb (--kv-cache-memory-bytes) or "
    "rollout.max_num_seqs (--max-num-seqs), training with a smaller train.micro_tokens_max or with "
    "actor.gradient_checkpointing_enable";

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
  const Error bug{ErrorCode::kInternal, what};
  return where.empty() ? bug : bug.within(where);
}

}  // namespace troupe::core
