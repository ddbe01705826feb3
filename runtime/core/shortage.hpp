// What the system has refused: memory, a thread, a process, an open file. Says which limit to
// raise, and ends a process that cannot go on without it with one line and exit code 3. Allocates
// nothing; any thread.
#pragma once

#include <exception>
#include <string_view>

namespace troupe::core {

struct Shortage {
  std::string_view what, advice;
  explicit operator bool() const noexcept { return !what.empty(); }
};

// The shortage behind an exception; none for any other exception. The text may point into it.
Shortage shortage_of(const std::exception& thrown) noexcept;

// Which limit on memory to raise, and which keys make a role take less of it.
inline constexpr std::string_view kMoreMemory =
    "raise `ulimit -v`, the limit of the container, or the memory of the machine";
inline constexpr std::string_view kSmallerRoles =
    "generation takes less with a smaller rollout.kv_cache_gb (--kv-cache-memory-bytes) or "
    "rollout.max_num_seqs (--max-num-seqs), training with a smaller train.micro_tokens_max or with "
    "actor.gradient_checkpointing_enable";

// Writes the shortage to standard error and ends the process with exit code 3, without destructors:
// other threads may be anywhere.
[[noreturn]] void end_for_want(const Shortage& of) noexcept;

// From now on an exception that nobody catches and that says so ends the process in this way. Any
// other one ends it as before.
void end_for_want_on_terminate() noexcept;

}  // namespace troupe::core
