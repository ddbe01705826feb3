// Checks of internal invariants; TROUPE_CHECK is always on, TROUPE_DCHECK only in debug builds. A
// failed check is a bug: it prints where and why, then aborts. Never use it on input from a user, a
// file or a peer; that is what Result is for.
#pragma once

namespace troupe::core {

[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* expression,
                               const char* why) noexcept;

}  // namespace troupe::core

#define TROUPE_CHECK(condition, why) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::troupe::core::check_failed(__FILE__, __LINE__, #condition, why))

#ifdef NDEBUG
#define TROUPE_DCHECK(condition, why) static_cast<void>(0)
#else
#define TROUPE_DCHECK(condition, why) TROUPE_CHECK(condition, why)
#endif
