// The table and the drawing.
#include "apps/bench/lag_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace troupe::app {
namespace {

// 97.5 % quantile of Student's t by degrees of freedom, from 1.
constexpr std::array<double, 10> kStudent = {12.706, 4.303, 3.182, 2.776, 2.571,
                                             2.447,  2.365, 2.306, 2.262, 2.228};
constexpr const char* kColours[] = {"#4269d0", "#efb118", "#3ca951",
                                    "#ff725c", "#a463f2", "#6cc5b0"};
constexpr double kLeft = 60, kTop = 40, kWidth = 520, kHeight = 300;

std::string text_of(const char* format, double a) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, a);
  return buffer;
}

template <class Key>
void add_new(std::vector<Key>& keys, const Key& key) {
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
}

std::vector<std::string> arms_of(const std::vector<LagCell>& cells) {
  std::vector<std::string> arms;
  for (const LagCell& cell : cells)
    add_new(arms, cell.arm);
  return arms;
}

std::vector<std::int64_t> lags_of(const std::vector<LagCell>& cells) {
  std::vector<std::int64_t> lags;
  for (const LagCell& cell : cells)
    add_new(lags, cell.lag);
  std::sort(lags.begin(), lags.end());
  return lags;
}

const LagCell* find(const std::vector<LagCell>& cells, const std::string& arm, std::int64_t lag) {
  for (const LagCell& cell : cells) {
    if (cell.arm == arm && cell.lag == lag) return &cell;
  }
  return nullptr;
}

std::string label(double x, double y, const char* anchor, const std::string& words) {
  return "<text x=\"" + text_of("%.1f", x) + "\" y=\"" + text_of("%.1f", y) + "\" text-anchor=\"" +
         anchor + "\">" + words + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + text_of("%.1f", x1) + "\" y1=\"" + text_of("%.1f", y1) + "\" x2=\"" +
         text_of("%.1f", x2) + "\" y2=\"" + text_of("%.1f", y2) + "\" " + style + "/>\n";
}

}  // namespace

double LagCell::mean() const {
  double sum = 0;
  for (const double score : scores)
    sum += score;
  return scores.empty() ? 0 : sum / static_cast<double>(scores.size());
}

double LagCell::half_interval() const {
  if (scores.size() < 2) return 0;
  double squares = 0;
  for (const double score : scores)
    squares += (score - mean()) * (score - mean());
  const double freedom = static_cast<double>(scores.size() - 1);
  const std::size_t row = scores.size() - 2;
  const double t = row < kStudent.size() ? kStudent[row] : 1.96;
  return t * std::sqrt(squares / freedom / static_cast<double>(scores.size()));
}

std::string lag_table(const std::vector<LagCell>& cells) {
  const auto lags = lags_of(cells);
  std::string table = "| arm |", rule = "|---|";
  for (const std::int64_t lag : lags) {
    table += " lag " + std::to_string(lag) + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  for (const std::string& arm : arms_of(cells)) {
    const LagCell* first = find(cells, arm, lags.front());
    table += "| " + arm + " |";
    for (const std::int64_t lag : lags) {
      const LagCell* cell = find(cells, arm, lag);
      if (cell == nullptr) {
        table += "  |";
        continue;
      }
      table += " " + text_of("%.3f", cell->mean()) + " ± " + text_of("%.3f", cell->half_interval());
      if (cell != first && first != nullptr && first->mean() > 0) {
        table += " (" + text_of("%.0f", 100 * cell->mean() / first->mean()) + " %)";
      }
      table += " |";
    }
    table += "\n";
  }
  return table;
}

std::string lag_figure(const std::vector<LagCell>& cells) {
  const auto lags = lags_of(cells);
  const auto arms = arms_of(cells);
  const auto x_of = [&](std::size_t i) {
    const auto last = static_cast<double>(std::max<std::size_t>(lags.size() - 1, 1));
    return kLeft + kWidth * static_cast<double>(i) / last;
  };
  const auto y_of = [](double score) { return kTop + kHeight * (1 - std::clamp(score, 0.0, 1.0)); };
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"410\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"720\" height=\"410\" fill=\"white\"/>\n";
  svg += label(kLeft, 22, "start",
               "Score after training by age of the samples (mean and 95 % interval over seeds)");
  for (int i = 0; i <= 5; ++i) {
    const double score = 0.2 * i;
    svg += line(kLeft, y_of(score), kLeft + kWidth, y_of(score), "stroke=\"#ddd\"");
    svg += label(kLeft - 8, y_of(score) + 4, "end", text_of("%.1f", score));
  }
  for (std::size_t i = 0; i < lags.size(); ++i)
    svg += label(x_of(i), kTop + kHeight + 22, "middle", std::to_string(lags[i]));
  svg += label(kLeft + kWidth / 2, kTop + kHeight + 46, "middle",
               "lag: updates between sampling and learning");
  for (std::size_t a = 0; a < arms.size(); ++a) {
    const std::string colour = kColours[a % std::size(kColours)];
    const double shift = 5 * (static_cast<double>(a) - static_cast<double>(arms.size() - 1) / 2);
    std::string points, bars;
    for (std::size_t i = 0; i < lags.size(); ++i) {
      const LagCell* cell = find(cells, arms[a], lags[i]);
      if (cell == nullptr) continue;
      const double x = x_of(i) + shift, mean = cell->mean(), half = cell->half_interval();
      points += text_of("%.1f", x) + "," + text_of("%.1f", y_of(mean)) + " ";
      bars += line(x, y_of(mean - half), x, y_of(mean + half), "stroke=\"" + colour + "\"");
    }
    svg += "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + colour +
           "\" stroke-width=\"2\"/>\n" + bars;
    const double y = kTop + 20 + 22 * static_cast<double>(a);
    svg += line(kLeft + kWidth + 24, y - 4, kLeft + kWidth + 44, y - 4,
                "stroke=\"" + colour + "\" stroke-width=\"2\"");
    svg += label(kLeft + kWidth + 50, y, "start", arms[a]);
  }
  return svg + "</svg>\n";
}

}  // namespace troupe::app
