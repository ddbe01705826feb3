#include "apps/report/svg_chart.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::report {
namespace {

constexpr double kWidth = 720, kHeight = 410, kLeft = 70, kRight = 580, kTop = 40, kBottom = 340;
constexpr const char* kColours[] = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0",
                                    "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e"};

template <class... Values>
void print(std::string& out, const char* format, Values... values) {
  out += core::printed(format, values...);
}

// From values to places: an interval of one axis, at least a little wide.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void finish() {
    if (low > high) low = 0, high = 1;
    if (low == high) {
      const double room = low == 0 ? 1 : std::abs(low) / 2;
      if (low != 0) low -= room;
      high += room;
    }
  }
  double place(double value, double begin, double end) const {
    return begin + (value - low) / (high - low) * (end - begin);
  }
};

// The values as they are drawn: logarithms on that scale.
std::vector<CurvePoint> drawn(std::vector<CurvePoint> points, Scale scale) {
  if (scale == Scale::kLinear) return points;
  for (CurvePoint& point : points) {
    if (!point.value) continue;
    const double value = *point.value;
    point.value.reset();
    if (value > 0) point.value = std::log10(value);
  }
  return points;
}

void add_text(std::string& out, double x, double y, const char* anchor, const std::string& text) {
  print(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  out += xml_text(text) + "</text>\n";
}

void add_axes(std::string& out, const Axis& x, const Axis& y, Scale scale) {
  for (const double tick :
       scale == Scale::kLog ? log_ticks(y.low, y.high, 6) : ticks(y.low, y.high, 5)) {
    const double at = y.place(tick, kBottom, kTop);
    print(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", kLeft,
          at, kRight, at);
    add_text(out, kLeft - 8, at + 4, "end",
             core::printed("%.4g", scale == Scale::kLog ? std::pow(10, tick) : tick));
  }
  for (const double tick : ticks(x.low, x.high, 6))
    add_text(out, x.place(tick, kLeft, kRight), kBottom + 22, "middle",
             core::printed("%.4g", tick));
  add_text(out, (kLeft + kRight) / 2, kBottom + 46, "middle", "step");
}

void add_line(std::string& out,
              const std::vector<CurvePoint>& points,
              const Axis& x,
              const Axis& y,
              const char* colour,
              double opacity) {
  std::string path;
  bool pen_down = false;
  for (const CurvePoint& point : points) {
    if (point.value) {
      print(path, "%c%.1f,%.1f", pen_down ? 'L' : 'M', x.place(point.step, kLeft, kRight),
            y.place(*point.value, kBottom, kTop));
    }
    pen_down = point.value.has_value();
  }
  if (path.empty()) return;
  out += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\"";
  if (opacity < 1) print(out, " stroke-opacity=\"%.2f\"", opacity);
  out += " stroke-width=\"2\" stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n";
}

}  // namespace

std::string xml_text(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : observe::terminal_line(text, 200)) {
    const auto found = std::ranges::find(kEscapes, c, &std::pair<char, std::string_view>::first);
    out += found == std::end(kEscapes) ? std::string_view(&c, 1) : found->second;
  }
  return out;
}

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {};
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> out;
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double i = first; i <= last; ++i)
    out.push_back(i == 0 ? 0 : i * step);
  return out;
}

std::vector<double> log_ticks(double low, double high, int count) {
  for (const std::vector<double>& factors : {std::vector<double>{1, 2, 5}, {1}}) {
    std::vector<double> out;
    for (double power = std::floor(low); power <= high; ++power) {
      for (const double factor : factors) {
        const double tick = power + std::log10(factor);
        if (tick >= low - 1e-9 && tick <= high + 1e-9) out.push_back(tick);
      }
    }
    if (out.size() >= 2 && out.size() <= static_cast<std::size_t>(count) + 1) return out;
  }
  return ticks(low, high, count);
}

std::string svg_chart(const std::string& title,
                      const std::vector<std::pair<std::string, const Curve*>>& lines,
                      Scale scale) {
  std::string out;
  print(out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"%.0f\" height=\"%.0f\" "
        "fill=\"white\"/>\n",
        kWidth, kHeight, kWidth, kHeight);
  add_text(out, kLeft, 22, "start", title);
  Axis x, y;
  std::vector<std::vector<CurvePoint>> points;
  for (const auto& [name, curve] : lines) {
    points.push_back(drawn(curve->points(), scale));
    for (const CurvePoint& point : points.back()) {
      if (!point.value) continue;
      x.add(point.step);
      y.add(*point.value);
    }
  }
  x.finish();
  y.finish();
  add_axes(out, x, y, scale);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* const colour = kColours[i % std::size(kColours)];
    const bool thinned = lines[i].second->bucket_values() > 1;
    add_line(out, points[i], x, y, colour, thinned ? 0.3 : 1);
    if (thinned) add_line(out, drawn(lines[i].second->means(), scale), x, y, colour, 1);
    const double at = kTop + 10 + 20 * static_cast<double>(i);
    print(out,
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
          "stroke-width=\"3\"/>\n",
          kRight + 12, at, kRight + 30, at, colour);
    add_text(out, kRight + 36, at + 4, "start", lines[i].first);
  }
  return out + "</svg>\n";
}

}  // namespace troupe::report
