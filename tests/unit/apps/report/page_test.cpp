// The page of a report: what comes from a run stays data, whatever it says.
#include "apps/report/page.hpp"

#include "runtime/core/base64.hpp"
#include "runtime/store/sha256.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace troupe::report {
namespace {

using namespace std::string_literals;

using nlohmann::ordered_json;

// What stands between the first `before` and the next `after` behind it.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto begin = text.find(before);
  if (begin == text.npos) return "there is no " + before;
  const auto from = begin + before.size();
  return text.substr(from, text.find(after, from) - from);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string policy_hash(const std::string& content) {
  return "'sha256-" + core::base64(bytes_of_hex(store::sha256_text(content))) + "'";
}

}  // namespace

TEST(ScriptJson, MarkupAndLineSeparatorsAreEscaped) {
  EXPECT_EQ(script_json("</script><!--&"), R"("\u003c/script\u003e\u003c!--\u0026")");
  EXPECT_EQ(script_json("a\u2028b\u2029c"), R"("a\u2028b\u2029c")");
  EXPECT_EQ(script_json("\"\\\n"), R"("\"\\\n")");
}

TEST(ScriptJson, WhatIsInvisibleOrReordersIsEscaped) {
  EXPECT_EQ(script_json("a\0b"s), R"("a\u0000b")");
  EXPECT_EQ(script_json("\u202Eabc\u202C"), R"("\u202eabc\u202c")");
  EXPECT_EQ(script_json("\u200B\uFEFF\u0085\x7F"), R"("\u200b\ufeff\u0085\u007f")");
}

TEST(ScriptJson, OtherCharactersStay) {
  EXPECT_EQ(script_json("\u00e4\u4e2d\U0001F600"), "\"\u00e4\u4e2d\U0001F600\"");
  EXPECT_EQ(script_json("\xFFx"), "\"\uFFFDx\"");  // no UTF-8
}

TEST(ScriptJson, ReadsBackToTheSameValue) {
  const ordered_json value = {{"<b>", {1, 2.5, nullptr, true}}, {"t", "\0<>&\u2028\u202E\""s}};
  EXPECT_EQ(ordered_json::parse(script_json(value)), value);
}

TEST(Page, HoldsTheDataOnceAndNothingOfItElsewhere) {
  const ordered_json data = {{"t", "</script><script>alert(1)</script>@SCRIPT@@DATA@"}};
  const std::string text = page(data);
  EXPECT_EQ(ordered_json::parse(between(text, "id=\"data\">", "</script>")), data);
  EXPECT_EQ(count_of(text, "<script"), 2u);
  EXPECT_EQ(count_of(text, "</script>"), 2u);
  EXPECT_EQ(count_of(text, "alert(1)"), 1u);
  EXPECT_TRUE(text.starts_with("<!doctype html>"));
}

TEST(Page, ThePolicyAllowsItsOwnScriptAndStyleAlone) {
  const std::string text = page(ordered_json::object());
  const std::string policy = between(text, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_EQ(policy, "default-src 'none'; script-src " +
                        policy_hash(between(text, "<script>", "</script>")) + "; style-src " +
                        policy_hash(between(text, "<style>", "</style>")) +
                        "; base-uri 'none'; form-action 'none'");
}

// The script has none of the ways by which text becomes markup or code.
TEST(Page, TheScriptNeverMakesMarkupOfText) {
  const std::string text = page(ordered_json::object());
  const std::string script = between(text, "<script>", "</script>");
  ASSERT_GT(script.size(), 1000u);
  for (const char* way : {".innerHTML", ".outerHTML", "insertAdjacentHTML", "document.write",
                          "eval(", "new Function", "createContextualFragment", "DOMParser",
                          "srcdoc", "setTimeout(", "import(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(script.find(way), script.npos) << way;
  }
  for (const char* address : {"http:", "https:", "//cdn", "url("}) {
    if (std::string(address) == "http:") {
      EXPECT_EQ(count_of(text, address), 1u) << "the name of SVG's namespace alone";
    } else {
      EXPECT_EQ(count_of(text, address), 0u) << address;
    }
  }
}

}  // namespace troupe::report
