// Means and intervals of the runs of `troupe bench lag`, as a table and as a figure. Pure
// functions; text in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

// One cell of the study: an arm at a lag.
struct LagCell {
  std::string arm;
  std::int64_t lag = 0;
  std::vector<double> scores;  // final score of each seed

  double mean() const;
  // Half of the 95 % interval of the mean (Student's t); 0 with fewer than two seeds.
  double half_interval() const;
};

// A Markdown table: a row for each arm, a column for each lag, and what the arm keeps of its own
// score at the first lag.
std::string lag_table(const std::vector<LagCell>& cells);

// An SVG: one line for each arm over the lags, bars for the intervals.
std::string lag_figure(const std::vector<LagCell>& cells);

}  // namespace troupe::app
