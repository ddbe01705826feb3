#include "apps/report/page.hpp"

#include "apps/report/page_source.hpp"
#include "runtime/core/base64.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/store/sha256.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <string_view>

namespace troupe::report {
namespace {

// The character that begins at `at` in UTF-8 text from nlohmann's dump, which is well formed.
struct Character {
  unsigned code = 0;
  std::size_t bytes = 1;
};
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  unsigned code = byte(0) & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i)
    code = code << 6 | (byte(i) & 0x3Fu);
  return {code, bytes};
}

bool is_escaped(unsigned code) {
  if (code == '<' || code == '>' || code == '&') return true;
  if (code >= 0x7F && code < 0xA0) return true;  // DEL and C1
  return code == 0x061C || code == 0xFEFF || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F);
}

// As the policy names an element's content.
std::string hash_of(std::string_view content) {
  const std::string hex = store::sha256_text(content);
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16));
  return "'sha256-" + core::base64(bytes) + "'";
}

// Puts `text` in the place of `mark`, which is in the page once.
void fill(std::string& page, std::string_view mark, std::string_view text) {
  const auto at = page.find(mark);
  TROUPE_CHECK(at != page.npos, "the page lacks a place");
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string script_json(const nlohmann::ordered_json& value) {
  const std::string text =
      value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (is_escaped(character.code)) {
      out += core::printed("\\u%04x", character.code);
    } else {
      out.append(text, at, character.bytes);
    }
    at += character.bytes;
  }
  return out;
}

std::string page(const nlohmann::ordered_json& data) {
  std::string out = kPageText;
  fill(out, "@SCRIPT_HASH@", hash_of(kPageScript));
  fill(out, "@STYLE_HASH@", hash_of(kPageStyle));
  fill(out, "@STYLE@", kPageStyle);
  fill(out, "@SCRIPT@", kPageScript);
  // Last, so that no text of a run is taken for a mark.
  fill(out, "@DATA@", script_json(data));
  return out;
}

}  // namespace troupe::report
