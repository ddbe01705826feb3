// How a room says its bounds: a file limits.def with one row a bound, included by the room's
// limits.hpp, which makes constants of the rows, and by `troupe doctor`, which prints them.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

namespace troupe::core {

// Counts are 64 bits wide; times keep their type.
constexpr std::uint64_t limit(std::integral auto count) {
  return static_cast<std::uint64_t>(count);
}
template <class Count, class Period>
constexpr auto limit(std::chrono::duration<Count, Period> time) {
  return time;
}

// A bound as `doctor` prints it: times in milliseconds, or microseconds where they are so short.
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

#define TROUPE_LIMIT(name, value, shown, unit) \
  inline constexpr auto name = ::troupe::core::limit(value);
