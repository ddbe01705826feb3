// How a room declares its bounds: in a file limits.def with one row per bound. The room's
// limits.hpp includes it to define constants, and `troupe doctor` includes it to print them.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

namespace troupe::core {

// The value of a bound: counts become 64-bit; durations keep their type.
constexpr std::uint64_t limit(std::integral auto count) {
  return static_cast<std::uint64_t>(count);
}
template <class Count, class Period>
constexpr auto limit(std::chrono::duration<Count, Period> time) {
  return time;
}

// A bound as `doctor` prints it: times in milliseconds, or in microseconds below 1 ms.
struct LimitRow {
  constexpr LimitRow(const char* shown, std::integral auto count, const char* unit_text)
      : name(shown), value(static_cast<std::uint64_t>(count)), unit(unit_text) {}
  constexpr LimitRow(const char* shown, std::chrono::microseconds time, const char* unit_text)
      : LimitRow(shown, time.count() < 1000 ? time.count() : time.count() / 1000, unit_text) {}

  const char* name;
  std::uint64_t value;
  const char* unit;
};

}  // namespace troupe::core

// `doctor` prints `shown` as the bound's name; `unit` follows the value.
#define TROUPE_LIMIT(name, value, shown, unit) \
  inline constexpr auto name = ::troupe::core::limit(value);
