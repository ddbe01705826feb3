// JSON under bounds: what is accepted is what nlohmann's parser makes of it, what is refused says
// why, and the work grows with the text alone.
#include "runtime/parse/bounded_json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::parse {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string refusal(std::string_view text, const JsonBounds& bounds = {}) {
  const auto value = bounded_json<json>(text, bounds);
  return value ? "accepted" : value.error().message;
}

TEST(BoundedJson, ReadsWhatNlohmannReads) {
  for (const std::string text :
       {R"({"b": [1, -2, 3.5, 18446744073709551615, "x", null, true, [], {}], "a": {"c": [[1]]}})",
        "[]", "7", "\"\\u00e9\"", " {\"a\" : 1} \n"}) {
    const auto sorted = bounded_json<json>(text, {});
    const auto ordered = bounded_json<ordered_json>(text, {});
    ASSERT_TRUE(sorted && ordered) << text;
    EXPECT_EQ(*sorted, json::parse(text));
    EXPECT_EQ(ordered->dump(), ordered_json::parse(text).dump());
  }
}

TEST(BoundedJson, RefusesWhatIsNoText) {
  const std::string nul("{\"a\": 1}\0{", 10);
  EXPECT_EQ(refusal(nul), "is not valid JSON: byte 8 is a NUL");
  EXPECT_EQ(refusal("\xEF\xBB\xBF{}"), "is not valid JSON: it begins with a byte order mark");
  EXPECT_EQ(refusal("{\"a\": 1} {}").find("is not valid JSON: parse error at line 1, column 10"),
            0u);
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "nul", "\"\xff\"", "\"\\ud800\"", "[1e999]",
                           "// x\n{}", "[01]", "[NaN]"}) {
    EXPECT_EQ(refusal(text).find("is not valid JSON"), 0u) << text;
  }
}

TEST(BoundedJson, CountsDepthAndNamesWhileItReads) {
  const JsonBounds two{.depth_max = 2, .names_max = 2};
  EXPECT_EQ(refusal("[[1]]", two), "accepted");
  EXPECT_EQ(refusal("[[[", two), "is nested deeper than 2 levels");
  EXPECT_EQ(refusal(std::string(1'000'000, '['), two), "is nested deeper than 2 levels");
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"c": 1, "d": 2}})", two), "accepted");
  // The text is wrong behind the third name; nobody gets there.
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2, "c" !)", two), "has more than 2 names in one object");
}

TEST(BoundedJson, ANameTwiceIsTheLastOrRefused) {
  const std::string text = R"([{"a": 1, "b": {"c": 2, "a": 3, "c": 4}}])";
  const JsonBounds strict{.repeats = Repeats::kRefused};
  EXPECT_EQ(refusal(text, strict), "has the name `c` twice");
  EXPECT_EQ(refusal(R"([{"a": 1}, {"a": 1, "b": {"a": 2}}])", strict), "accepted");
  EXPECT_EQ(bounded_json<ordered_json>(text, {})->dump(), R"([{"a":1,"b":{"c":4,"a":3}}])");
}

// Tells what it sees, and stops at the number 7.
class Listener final : public JsonWatch {
 public:
  void key(std::size_t depth, const std::string& name) override {
    seen += std::to_string(depth) + name + " ";
  }
  bool value(std::size_t depth, bool is_number) override {
    seen += std::to_string(depth) + (is_number ? "# " : "- ");
    numbers += is_number;
    return numbers < 3;
  }
  std::string seen;
  int numbers = 0;
};

TEST(BoundedJson, AWatchSeesEachValueBeforeItIsMade) {
  Listener listener;
  EXPECT_TRUE(bounded_json<json>(R"({"a": [1, "x"], "b": {"c": 2.5}})", {.watch = &listener}));
  EXPECT_EQ(listener.seen, "0- 1a 1- 2# 2- 1b 1- 2c 2# ");
  Listener strict;
  EXPECT_EQ(refusal("[1, 2, 3, wrong", {.watch = &strict}), "holds more than is read");
}

// With nlohmann's callback this list takes minutes.
TEST(BoundedJson, ALongListCostsNoMoreAMemberThanAShortOne) {
  std::string text = "[{}";
  for (int i = 1; i < 400'000; ++i)
    text += ",{}";
  const auto list = bounded_json<json>(text + "]", {});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 400'000u);
}

}  // namespace
}  // namespace troupe::parse
