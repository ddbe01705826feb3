#include "runtime/core/foreign_text.hpp"

#include "runtime/core/split.hpp"

#include <algorithm>
#include <vector>

namespace troupe::core {
namespace {

constexpr std::string_view kBar = "\n  | ";
constexpr std::string_view kTrace = "Traceback (most recent call last):";
constexpr std::string_view kCut = "...", kMore = "  ...";
constexpr std::size_t kLine_bytes_max = 400;
constexpr std::size_t kLines_bytes_max = 1200;

// The beginning of the text, cut between characters.
std::string beginning(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0) == 0x80)
    --bytes_max;
  return std::string(text.substr(0, bytes_max)).append(kCut);
}

// Every control character of ASCII as a blank.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

bool is_indented(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '\t';
}

// Which line says what went wrong. There is at least one.
std::size_t telling_line(const std::vector<std::string_view>& lines) {
  std::size_t at = lines.size();
  for (std::size_t i = lines.size(); i-- > 0 && at == lines.size();)
    if (lines[i].starts_with(kTrace)) at = i;
  const auto told =
      std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(std::min(at + 1, lines.size())),
                   lines.end(), [](std::string_view line) { return !is_indented(line); });
  if (told != lines.end()) return static_cast<std::size_t>(told - lines.begin());
  for (std::size_t i = lines.size(); i-- > 0;)
    if (lines[i].find_first_not_of(" \t") != std::string_view::npos) return i;
  return 0;
}

// The lines that are shown: the last ones, or those from the telling one on.
struct Shown {
  std::size_t first = 0, end = 0;
};
Shown shown_of(const std::vector<std::string_view>& lines) {
  const auto bytes = [&](std::size_t i) { return std::min(lines[i].size(), kLine_bytes_max); };
  std::size_t room = kLines_bytes_max;
  Shown shown{lines.size(), lines.size()};
  while (shown.first > 0 && bytes(shown.first - 1) < room)
    room -= bytes(--shown.first) + 1;
  const std::size_t told = telling_line(lines);
  if (told >= shown.first) return shown;
  room = kLines_bytes_max;
  shown = {told, told};
  while (shown.end < lines.size() && bytes(shown.end) < room)
    room -= bytes(shown.end++) + 1;
  return shown;
}

}  // namespace

std::string quoted(std::string_view text, std::size_t bytes_max) {
  return "\"" + on_one_line(beginning(text, bytes_max)) + "\"";
}

std::string quoted_lines(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty()) return {};
  const auto lines = split(text, "\n");
  const auto [first, end] = shown_of(lines);
  std::string out;
  if (first > 0 && end < lines.size()) out.append(kBar).append(kTrace);
  if (first > 0) out.append(kBar).append(kMore);
  for (std::size_t i = first; i < end; ++i)
    out.append(kBar).append(on_one_line(beginning(lines[i], kLine_bytes_max)));
  if (end < lines.size()) out.append(kBar).append(kMore);
  return out;
}

std::string foreign(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.find('\n') != text.npos) return quoted_lines(text);
  return " " + on_one_line(beginning(text, kLines_bytes_max));
}

std::string barred(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && !text.substr(i).starts_with(kBar)) {
      out += kBar;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string with_fact(std::string_view message, std::string_view fact) {
  const std::string text = "; " + std::string(fact);
  const auto bar = message.find(kBar);
  if (bar == message.npos) return std::string(message) + text;
  const bool colon = bar > 0 && message[bar - 1] == ':';
  return std::string(message.substr(0, colon ? bar - 1 : bar)) + text + (colon ? ":" : "") +
         std::string(message.substr(bar));
}

std::string gist_of(std::string_view message) {
  std::string out;
  while (!message.empty()) {
    const auto bar = message.find(kBar);
    out += message.substr(0, bar);
    if (bar == message.npos) break;
    std::vector<std::string_view> lines;
    for (message.remove_prefix(bar); message.starts_with(kBar);) {
      message.remove_prefix(kBar.size());
      const auto end = std::min(message.find('\n'), message.size());
      lines.push_back(message.substr(0, end));
      message.remove_prefix(end);
    }
    out.append(" ").append(lines[telling_line(lines)]);
  }
  return out;
}

}  // namespace troupe::core
