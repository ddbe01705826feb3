#include "apps/hub/moved_line.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace troupe::hub {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBar = 24;

bool is_live() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  constexpr std::pair<const char*, double> kUnits[] = {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}};
  for (const auto& [unit, size] : kUnits)
    if (static_cast<double>(bytes) >= size)
      return core::printed("%.1f %s", static_cast<double>(bytes) / size, unit);
  return std::to_string(bytes) + " bytes";
}

MovedLine::MovedLine(std::string name, std::uint64_t total)
    : name_(std::move(name)), total_(total), live_(is_live()), since_(Clock::now()) {}

MovedLine::~MovedLine() {
  if (drawn_) std::fputc('\n', stderr);
}

void MovedLine::show(std::uint64_t moved) {
  if (total_ == 0) return;
  moved = std::min(moved, total_);
  const std::uint64_t tenth = moved * 10 / total_;
  if (first_ == 0) first_ = moved + 1;  // what was there before counts for no rate
  const std::string text = name_ + ": " + size_text(moved) + " of " + size_text(total_);
  if (!live_) {
    if (tenth > tenth_) std::fprintf(stderr, "%s\n", text.c_str());
    tenth_ = tenth;
    return;
  }
  const auto full = static_cast<std::size_t>(moved * kBar / total_);
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
  const double rate = seconds > 1 ? static_cast<double>(moved + 1 - first_) / seconds : 0;
  std::string line = std::string(full, '#') + std::string(kBar - full, '.') + "  " + text;
  if (rate > 0) line += ", " + size_text(static_cast<std::uint64_t>(rate)) + "/s";
  std::fprintf(stderr, "\r\x1b[K%s", observe::terminal_line(line, 100).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void MovedLine::note(const std::string& text) {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
  std::fprintf(stderr, "%s\n", observe::terminal_safe(text).c_str());
}

}  // namespace troupe::hub
