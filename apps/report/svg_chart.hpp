// A chart of one metric over the steps of several runs as an SVG file, for documents. The page of a
// report draws its charts itself, in a browser. Pure.
#pragma once

#include "apps/report/curve.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::report {

enum class Scale { kLinear, kLog };

// Text as it may stand in XML: markup escaped, and characters that XML does not allow replaced.
std::string xml_text(std::string_view text);

// Round values that lie between `low` and `high`, at most `count` + 1 of them, in rising order.
std::vector<double> ticks(double low, double high, int count);
// Ticks for a log scale: 1, 2 and 5 times powers of ten, or powers alone where there
// are many of them.
std::vector<double> log_ticks(double low, double high, int count);

// `lines`: a name for the legend and a curve each; of a thinned one the least and the greatest
// values are pale. On a logarithmic scale values that are not
// positive break the line.
std::string svg_chart(const std::string& title,
                      const std::vector<std::pair<std::string, const Curve*>>& lines,
                      Scale scale);

}  // namespace troupe::report
