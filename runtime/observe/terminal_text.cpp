#include "runtime/observe/terminal_text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace troupe::observe {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

// The UTF-8 character that `text`, which is not empty, begins with; nullopt if it is malformed
// (surrogates and overlong forms included).
std::optional<Character> first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return Character{lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return std::nullopt;
  std::uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return std::nullopt;
  return Character{code, bytes};
}

bool is_dangerous(std::uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) ||
         code == 0x200E || code == 0x200F || code == 0x2028 || code == 0x2029;
}

}  // namespace

std::string terminal_safe(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_of(text);
    const std::size_t bytes = character ? character->bytes : 1;
    if (!character) {
      out += kReplacement;
    } else if (!is_dangerous(character->code)) {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string terminal_line(std::string_view text, std::size_t columns) {
  std::string safe = terminal_safe(text);
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  std::size_t characters = 0;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(safe[i]) & 0xC0) != 0x80;
    if (starts && characters++ == columns) return safe.substr(0, i);
  }
  return safe;
}

}  // namespace troupe::observe
