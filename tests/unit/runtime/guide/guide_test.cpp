// Masks worked out by hand over the vocabulary of bytes and over one of a few words; limits; bombs.
#include "runtime/guide/guide_maker.hpp"
#include "tests/unit/runtime/guide/masks.hpp"

#include <gtest/gtest.h>

namespace troupe::guide {
namespace {

using test::byte_json;
using test::Guide;
using test::make;
using test::maker_of;

TEST(Guide, ARegexAllowsItsBytesAndEndsWhereItMatches) {
  Guide guide(make(maker_of(byte_json(), 257), {GrammarKind::kRegex, "ab?c"}));
  EXPECT_EQ(guide.allowed(), "a");
  EXPECT_FALSE(guide.may_end());
  guide.take("a");
  EXPECT_EQ(guide.allowed(), "bc");
  guide.take("b");
  EXPECT_EQ(guide.allowed(), "c");
  guide.take("c");
  EXPECT_EQ(guide.allowed(), "");
  EXPECT_TRUE(guide.may_end());
}

TEST(Guide, TokensOfManyBytesGoOnWithAnyPrefixOfTheText) {
  // 0 "a", 1 "ab", 2 "abc", 3 "b", 4 "bd", 5 "c", 6 the end.
  GuideMaker maker = maker_of(test::word_json({"a", "ab", "abc", "b", "bd", "c"}), 8);
  Guide guide(make(maker, {GrammarKind::kRegex, "abc?"}));
  EXPECT_EQ(guide.ids(), (std::vector<std::int32_t>{0, 1, 2}));
  Guide other = guide.clone();
  guide.take_id(0);
  EXPECT_EQ(guide.ids(), (std::vector<std::int32_t>{3}));  // "bd" leaves the grammar
  EXPECT_FALSE(guide.may_end());
  other.take_id(1);
  EXPECT_EQ(other.ids(), (std::vector<std::int32_t>{5}));
  EXPECT_TRUE(other.may_end());
  EXPECT_EQ(guide.ids(), (std::vector<std::int32_t>{3}));  // the clone's token is its own
}

TEST(Guide, SpecialTokensAndIdsWithoutATokenMatchNoText) {
  Guide guide(make(maker_of(byte_json(), 300), {GrammarKind::kRegex, "(?s:.*)"}));
  EXPECT_TRUE(guide.may_end());
  for (const std::int32_t id : guide.ids())
    EXPECT_LT(id, 256);
}

TEST(Guide, AJsonSchemaAllowsWhatValidates) {
  Guide guide(
      make(maker_of(byte_json(), 257),
           {GrammarKind::kJsonSchema,
            R"({"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":4}},
                        "required":["n"],"additionalProperties":false})"}));
  EXPECT_EQ(guide.allowed(), "{");
  guide.take(R"({"n":)");
  EXPECT_EQ(guide.allowed(), "\t\n\r 34");
  guide.take("4");
  EXPECT_EQ(guide.allowed(), "\t\n\r }");
  guide.take("}");
  EXPECT_EQ(guide.allowed(), "");
  EXPECT_TRUE(guide.may_end());
}

TEST(Guide, SpaceBetweenThePartsOfJsonHasAnEnd) {
  Guide guide(make(maker_of(byte_json(), 257), {GrammarKind::kJsonSchema, R"({"const":{"a":1}})"}));
  guide.take("{" + std::string(64, ' '));
  EXPECT_EQ(guide.allowed(), "\"");
  Guide tight(make(
      maker_of(byte_json(), 257),
      {GrammarKind::kJsonSchema,
       R"({"const":{"a":1},"x-guidance":{"whitespace_flexible":false,"whitespace_pattern":null}})"}));
  tight.take("{");
  EXPECT_EQ(tight.allowed(), "\"");
}

TEST(Guide, AGrammarMayHaveALanguageThatNoRegexHas) {
  Guide guide(
      make(maker_of(byte_json(), 257), {GrammarKind::kLark, "start: \"(\" start \")\" | \"x\""}));
  guide.take("((x");
  EXPECT_EQ(guide.allowed(), ")");
  guide.take("))");
  EXPECT_TRUE(guide.may_end());
  EXPECT_EQ(guide.allowed(), "");
}

TEST(Guide, ADeadEndHasAnEmptyMask) {
  // There is no token that writes the "c" behind "ab".
  GuideMaker maker = maker_of(test::word_json({"a", "b"}), 3);
  Guide guide(make(maker, {GrammarKind::kRegex, "abc|aa"}));
  guide.take_id(0);
  guide.take_id(1);
  EXPECT_TRUE(guide.ids().empty());
  EXPECT_FALSE(guide.may_end());
}

TEST(Guide, ATokenThatTheMaskHasNotIsAnError) {
  Guide guide(make(maker_of(byte_json(), 257), {GrammarKind::kRegex, "a"}));
  const auto taken = guide.get().take('b');
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("token 98 in the guide"), std::string::npos)
      << taken.error().message;
}

// What is refused, with what the message must name.
struct Refused {
  Grammar grammar;
  core::ErrorCode code;
  const char* names;
};

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += text;
  return out;
}

std::string product_of_choices(int factors) {
  std::string all;
  for (int i = 0; i < factors; ++i) {
    const std::string n = std::to_string(i);
    all += (i > 0 ? "," : "") + std::string(R"({"anyOf":[{"properties":{"a)") + n +
           R"(":{"type":"string"}}},{"properties":{"b)" + n + R"(":{"type":"integer"}}}]})";
  }
  return R"({"allOf":[)" + all + "]}";
}

TEST(Guide, AGrammarComesBackFromItsText) {
  for (const Grammar& one : {Grammar{GrammarKind::kJsonSchema, "{\"type\":\"null\"}"},
                             Grammar{GrammarKind::kRegex, "lark:[a-b]"},
                             Grammar{GrammarKind::kLark, "start: \"x\"\n"}}) {
    const auto read = grammar_of(text_of(one));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->kind, one.kind);
    EXPECT_EQ(read->text, one.text);
  }
  EXPECT_EQ(text_of({GrammarKind::kRegex, "a"}), "regex:a");
  EXPECT_FALSE(grammar_of("ebnf:a"));
  EXPECT_FALSE(grammar_of(""));
}

TEST(Guide, BadGrammarsAreErrorsThatSayWhat) {
  using core::ErrorCode;
  const std::vector<Refused> all = {
      {{GrammarKind::kRegex, "a("}, ErrorCode::kInvalidArgument, "the regular expression"},
      {{GrammarKind::kLark, "start: nothing"}, ErrorCode::kInvalidArgument, "nothing"},
      {{GrammarKind::kLark, ""}, ErrorCode::kInvalidArgument, "the grammar"},
      {{GrammarKind::kLark, "start: start"}, ErrorCode::kInvalidArgument, "allows no text"},
      {{GrammarKind::kJsonSchema, "{"}, ErrorCode::kInvalidArgument, "is not JSON"},
      {{GrammarKind::kJsonSchema, "false"}, ErrorCode::kInvalidArgument, "allows no value"},
      {{GrammarKind::kJsonSchema, R"({"type":"colour"})"}, ErrorCode::kInvalidArgument, "colour"},
      {{GrammarKind::kJsonSchema, R"({"not":{}})"}, ErrorCode::kInvalidArgument, "not"},
      {{GrammarKind::kJsonSchema, R"({"$ref":"http://example.org/a"})"},
       ErrorCode::kInvalidArgument,
       "example.org"},
      {{GrammarKind::kJsonSchema, R"({"$ref":"#"})"},
       ErrorCode::kInvalidArgument,
       "allows no text"},
      {{GrammarKind::kJsonSchema, R"({"x-guidance":3})"},
       ErrorCode::kInvalidArgument,
       "x-guidance"},
      {{GrammarKind::kRegex, std::string(70'000, 'a')}, ErrorCode::kResources, "65536"},
      {{GrammarKind::kRegex, std::string(200, '(') + std::string(200, ')')},
       ErrorCode::kResources,
       "64"},
      {{GrammarKind::kJsonSchema, "{\"enum\":[" + repeated("{\"a\":1},", 4'000) + "0]}"},
       ErrorCode::kResources,
       "members"},
      {{GrammarKind::kJsonSchema, product_of_choices(14)}, ErrorCode::kResources, "too large"},
  };
  GuideMaker maker = maker_of(byte_json(), 257);
  for (const Refused& one : all) {
    const auto made = maker.make(one.grammar);
    ASSERT_FALSE(made) << one.grammar.text.substr(0, 80);
    EXPECT_EQ(made.error().code, one.code) << made.error().message;
    EXPECT_NE(made.error().message.find(one.names), std::string::npos)
        << made.error().message.substr(0, 400) << " for " << one.grammar.text.substr(0, 80);
  }
}

// Takes the first allowed token so many times, or until there is none.
core::Result<void> go_on(const engine::TokenGuide& start, int tokens) {
  TROUPE_TRY_ASSIGN(guide, start.clone());
  for (int i = 0; i < tokens; ++i) {
    TROUPE_TRY_ASSIGN(mask, guide->mask());
    std::int32_t token = 0;
    const auto end = static_cast<std::int32_t>(mask.words.size() * 32);
    while (token < end &&
           (mask.words[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1u) == 0)
      ++token;
    if (token == end) return {};
    TROUPE_TRY(guide->take(token));
  }
  return {};
}

// Chains of references as long as the bytes allow, wide objects, long alternatives: made or
// refused, never a crash.
TEST(Guide, GrammarsAtTheLimitOfTheirBytesDoNoHarm) {
  std::string chain = R"({"$ref":"#/$defs/0","$defs":{"0":{"type":"null"})";
  for (int i = 1; chain.size() < 65'000; ++i) {
    chain += ",\"" + std::to_string(i) + "\":{\"items\":{\"$ref\":\"#/$defs/" +
             std::to_string(i - 1) + "\"}}";
    const auto at = chain.find("\",\"$defs\"");
    chain.replace(0, at, R"({"$ref":"#/$defs/)" + std::to_string(i));
  }
  chain += "}}";
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; wide.size() < 65'000; ++i)
    wide += (i > 0 ? "," : "") + std::string("\"p") + std::to_string(i) + "\":{}";
  wide += "}}";
  std::string either;
  for (int i = 0; either.size() < 65'000; ++i)
    either += (i > 0 ? "|a" : "a") + std::to_string(i);
  GuideMaker maker = maker_of(byte_json(), 257);
  for (const Grammar& grammar :
       {Grammar{GrammarKind::kJsonSchema, chain}, Grammar{GrammarKind::kJsonSchema, wide},
        Grammar{GrammarKind::kRegex, either},
        Grammar{GrammarKind::kRegex, repeated("(a|b|ab)*", 7'000)},
        Grammar{GrammarKind::kRegex, "((((a{1,100}){1,100}){1,100}){1,100}){1,100}"},
        Grammar{GrammarKind::kLark, "start: " + repeated("\"a\" ", 16'000)}}) {
    const auto made = maker.make(grammar);
    const auto outcome = made ? go_on(*made.value(), 40) : core::Result<void>(made.failure());
    if (outcome) continue;
    EXPECT_EQ(outcome.error().code, core::ErrorCode::kResources)
        << grammar.text.substr(0, 60) << ": " << outcome.error().message.substr(0, 400);
  }
}

TEST(Guide, ALimitOfAMaskIsAnErrorThatNamesIt) {
  GuideMaker maker = maker_of(byte_json(), 257, {.row_items = 10});
  std::string either = "start: \"a\" b\nb: ";
  for (int i = 0; i < 40; ++i)
    either += (i > 0 ? " | " : "") + std::string("c") + std::to_string(i);
  for (int i = 0; i < 40; ++i)
    either += "\nc" + std::to_string(i) + ": \"" + std::to_string(i) + "\" b?";
  const auto made = maker.make({GrammarKind::kLark, either});
  const auto outcome = made ? go_on(*made.value(), 3) : core::Result<void>(made.failure());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, core::ErrorCode::kResources) << outcome.error().message;
  EXPECT_NE(outcome.error().message.find("troupe doctor"), std::string::npos)
      << outcome.error().message;
}

TEST(Guide, ATokenizerWithoutBytesIsRefused) {
  GuideMaker maker =
      maker_of(R"({"decoder":{"type":"WordPiece"},"added_tokens":[],"model":{"vocab":{}}})", 10);
  const auto made = maker.make({GrammarKind::kRegex, "a"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, core::ErrorCode::kUnsupported);
  EXPECT_NE(made.error().message.find("WordPiece"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace troupe::guide
