// Tells the thread sanitizer what CAF's mailboxes ensure: what one thread wrote into a frame before
// it gave it to CAF is there for the thread that takes it from CAF. Debian's CAF is compiled
// without the sanitizer, which does not see its locks. Without the sanitizer these do nothing. Any
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
