// Timing, medians and printing for the benchmarks. Any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::bench {

inline constexpr int kRepetitions = 3;  // of a measurement, of which the median is printed

class Stopwatch {
 public:
  // Seconds since the last lap began, or since the stopwatch was made.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // Ends the lap: returns its seconds and begins the next.
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Nanoseconds on the steady clock, which all processes of a machine share.
std::int64_t clock_ns();

// Processor time of this process so far, of all its threads, in seconds.
double processor_seconds();

// The middle one of `values`, or the mean of the middle two. `values` must not be empty.
double median(std::vector<double> values);

// The first, second and third quartile of `values`, between neighbours in proportion. `values` must
// not be empty.
struct Quartiles {
  double first = 0, second = 0, third = 0;
  // Whether the middle halves of two samples have a value in common.
  bool overlap(const Quartiles& other) const {
    return first <= other.third && other.first <= third;
  }
};
Quartiles quartiles(std::vector<double> values);

// Prints one JSON line or, for people, one line per figure.
void print_figures(const nlohmann::ordered_json& figures, bool as_json);

}  // namespace troupe::bench
