// tokenizer.json files that come with a foreign model and mean harm: steps that would make
// gigabytes of a line of text. Each is refused when it is read or at the text, within a memory that
// is capped; the steps of real tokenizers are taken.
#include "runtime/text/limits.hpp"
#include "runtime/text/tokenizer.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>

namespace troupe::text {
namespace {

using nlohmann::json;

json replace_step(const json& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

json in_order(const char* kind, const json& step, int count) {
  json steps = json::array();
  for (int i = 0; i < count; ++i)
    steps.push_back(step);
  return {{"type", "Sequence"}, {kind, steps}};
}

json with(const char* key, const json& value) {
  auto whole = byte_level_json();
  whole[key] = value;
  return whole;
}

json template_of(int pieces, int ids) {
  json single = json::array(), numbers = json::array(), names = json::array();
  for (int i = 0; i < ids; ++i) {
    numbers.push_back(256);
    names.push_back("<|end|>");
  }
  for (int i = 0; i < pieces; ++i)
    single.push_back({{"SpecialToken", {{"id", "E"}, {"type_id", 0}}}});
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  const json special = {{"E", {{"id", "E"}, {"ids", numbers}, {"tokens", names}}}};
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                                {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}})},
          {"special_tokens", special}};
}

// What stands in the way of encoding `text` and decoding its ids; empty if nothing does.
std::string refusal(const json& whole, const std::string& text) {
  const auto tokenizer = Tokenizer::parse(whole.dump(), {}, "hostile");
  if (!tokenizer) return tokenizer.error().message;
  const auto encoding = tokenizer->encode(text, {.add_special = true});
  if (!encoding) return encoding.error().message;
  const auto back = tokenizer->decode(encoding->ids);
  return back ? "" : back.error().message;
}

// Runs `body` in a process that may map 2 GiB more than this one has.
void within_memory(const std::function<void()>& body) {
  const auto capped = [&body] {
    const rlimit cap{std::size_t{3} << 30, std::size_t{3} << 30};
    setrlimit(RLIMIT_AS, &cap);
    body();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(capped(), testing::ExitedWithCode(0), "");
}

struct Hostile {
  const char* what;
  json whole;
  std::string text;
  std::string says;
};

std::vector<Hostile> hostile_files() {
  const json letter = {{"String", "a"}}, nothing = {{"Regex", ""}};
  const std::string as(4096, 'a');
  const auto doubling = in_order("normalizers", replace_step(letter, "aa"), 40);
  auto added = with("normalizer", doubling);
  added["added_tokens"][0]["normalized"] = true;
  const json byte_level = byte_level_json()["pre_tokenizer"];
  auto affix = byte_level_json();
  affix["model"]["continuing_subword_prefix"] = std::string(1 << 20, 'p');
  const json decode_twice = in_order("decoders", replace_step(letter, "aa"), 40);
  return {
      {"replacements that double", with("normalizer", doubling), "a", "normalizers"},
      {"the same, at an added token", added, "", "normalizers"},
      {"fewer of them, over a long text",
       with("normalizer", in_order("normalizers", replace_step(letter, "aa"), 19)), as, "bytes"},
      {"a pattern that matches nothing",
       with("normalizer", in_order("normalizers", replace_step(nothing, "aaaaaaaaaa"), 12)), "a",
       "normalizers"},
      {"one long replacement", with("normalizer", replace_step(letter, std::string(1 << 20, 'b'))),
       "a", "a replacement has"},
      {"a replacement of the longest size, many times",
       with("normalizer", replace_step(letter, std::string(16 << 10, 'b'))), as, "bytes"},
      {"long prefixes",
       with("normalizer",
            in_order("normalizers", {{"type", "Prepend"}, {"prepend", std::string(1 << 20, 'p')}},
                     50)),
       "a", "a prefix has"},
      {"a prefix for each of many added tokens",
       with("normalizer", json{{"type", "Prepend"}, {"prepend", std::string(16 << 10, 'p')}}),
       [] {
         std::string ends;
         for (int i = 0; i < 1000; ++i)
           ends += "<|end|>x";
         return ends;
       }(),
       "bytes"},
      {"bytes of bytes of bytes", with("pre_tokenizer", in_order("pretokenizers", byte_level, 40)),
       "é", "pre-tokenizers"},
      {"a template of very many ids", with("post_processor", template_of(100'000, 1'000)), "a",
       "post-processors"},
      {"templates of templates",
       with("post_processor", in_order("processors", template_of(100, 10), 40)), "a",
       "post-processors"},
      {"very many steps", with("normalizer", in_order("normalizers", json{{"type", "NFC"}}, 2000)),
       "a", "more than 1024 normalizers"},
      {"decoders that double", with("decoder", decode_twice), "a", "decoders"},
      {"a long prefix of subwords", affix, "aa", "prefix or suffix"},
  };
}

TEST(HostileTokenizer, StepsThatGrowATextAreRefused) {
  within_memory([] {
    for (const auto& file : hostile_files()) {
      const auto message = refusal(file.whole, file.text);
      EXPECT_NE(message.find("tokenizer.json"), std::string::npos) << file.what << ": " << message;
      EXPECT_NE(message.find(file.says), std::string::npos) << file.what << ": " << message;
      EXPECT_LT(message.size(), 300u) << file.what;
    }
  });
}

TEST(HostileTokenizer, TheStepsOfRealTokenizersAreTaken) {
  const json mistral = {
      {"type", "Sequence"},
      {"normalizers",
       {{{"type", "Prepend"}, {"prepend", "▁"}}, replace_step({{"String", " "}}, "▁")}}};
  const json xlnet = {{"type", "Sequence"},
                      {"normalizers",
                       {replace_step({{"String", "``"}}, "\""),
                        {{"type", "NFKD"}},
                        {{"type", "StripAccents"}},
                        {{"type", "Lowercase"}},
                        replace_step({{"Regex", " {2,}"}}, " ")}}};
  const std::string page = [] {
    std::string text;
    while (text.size() < (256u << 10))
      text += "a quick   brown ``fox`` ﷺ ";
    return text;
  }();
  for (const auto& normalizer : {json(), mistral, xlnet, json{{"type", "NFC"}}}) {
    EXPECT_EQ(refusal(with("normalizer", normalizer), page), "") << normalizer.dump();
  }
  const auto tokenizer = Tokenizer::parse(with("normalizer", mistral).dump(), {}, "real");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(*tokenizer->decode(tokenizer->encode("a b")->ids), "▁a▁b");
}

TEST(HostileTokenizer, WhatATextMayBecomeIsExact) {
  // 256 letters of 4,096 bytes each are the 1 MiB that a short text may become; one more is not.
  const auto normalizer = replace_step({{"String", "a"}}, std::string(4096, 'b'));
  auto whole = with("normalizer", normalizer);
  whole["pre_tokenizer"] = nullptr;
  const auto plain = Tokenizer::parse(whole.dump(), {}, "exact");
  ASSERT_TRUE(plain);
  const auto most = limits::kTokenizerText_bytes_max / 4096;
  EXPECT_EQ(plain->encode(std::string(most, 'a'))->ids.size(), limits::kTokenizerText_bytes_max);
  const auto more = plain->encode(std::string(most + 1, 'a'));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, core::ErrorCode::kData);
  // Letters that are no match count as themselves.
  EXPECT_TRUE(plain->encode(std::string(most - 1, 'a') + std::string(4096, 'c')));
}

}  // namespace
}  // namespace troupe::text
