#include "runtime/observe/live_line.hpp"

#include "runtime/observe/terminal_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace troupe::observe {
namespace {

constexpr std::string_view kGap = "  ";

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t width_of(std::span<const LinePart> parts) {
  std::size_t width = 0;
  for (const LinePart& part : parts)
    width += (width == 0 ? 0 : kGap.size()) + code_points(part.text);
  return width;
}

}  // namespace

std::string fitted_line(std::span<const LinePart> parts, std::size_t columns, bool colour) {
  std::vector<LinePart> shown;
  for (const LinePart& part : parts) {
    if (part.text.empty()) continue;
    shown.push_back(part);
    shown.back().text = terminal_line(part.text, part.text.size());
  }
  for (std::size_t width = width_of(shown); width > columns && !shown.empty();
       width = width_of(shown)) {
    const auto last = std::ranges::max_element(shown, {}, &LinePart::rank);
    const std::size_t over = width - columns, own = code_points(last->text);
    const std::size_t rest = own > over ? own - over : 0;
    const std::size_t least = last->rank == 0 ? 1 : last->columns_min;
    if (least > 0 && rest >= least) {
      last->text = terminal_line(last->text, rest);
    } else {
      shown.erase(last);
    }
  }
  std::string out;
  for (const LinePart& part : shown) {
    if (!out.empty()) out += kGap;
    out += part.dim && colour ? "\x1b[2m" + part.text + "\x1b[0m" : part.text;
  }
  return out;
}

std::string bar_text(double share, std::size_t cells) {
  const double all = static_cast<double>(cells);
  const double full = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) * all : 0;
  const auto filled = std::min(cells, static_cast<std::size_t>(full));
  return "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
}

}  // namespace troupe::observe
