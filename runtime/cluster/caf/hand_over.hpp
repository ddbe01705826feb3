// Tells ThreadSanitizer that a frame's bytes pass from one thread to another through CAF's
// mailboxes. CAF's locks order these accesses, but the sanitizer does not see them, because
// Debian's CAF is compiled without it. Without the sanitizer these functions do nothing. Any
// thread.
#pragma once

#include "runtime/wire/frame.hpp"

#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace troupe::cluster::exchange {

inline void given_to_caf([[maybe_unused]] const wire::Frame& frame) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(const_cast<std::uint64_t*>(frame.words().data()));
#endif
}
inline void taken_from_caf([[maybe_unused]] const wire::Frame& frame) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(const_cast<std::uint64_t*>(frame.words().data()));
#endif
}

}  // namespace troupe::cluster::exchange
