// Regular expressions that whole names must match, as Python's re.fullmatch does it.
// tests/oracle/model_lora_test.py compares thousands of them with Python.
#include "runtime/parse/name_pattern.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::parse {
namespace {

constexpr const char* kName = "model.layers.12.self_attn.q_proj";

bool matches(const std::string& pattern, const std::string& name) {
  const auto compiled = NamePattern::compile(pattern);
  EXPECT_TRUE(compiled) << pattern << ": " << compiled.error().message;
  if (!compiled) return false;
  const auto found = compiled->matches(name);
  EXPECT_TRUE(found) << pattern;
  return found && *found;
}

TEST(NamePattern, MatchesAWholeName) {
  for (const char* const pattern :
       {".*q_proj", ".*(q_proj|v_proj)", R"(model\.layers\.\d+\.self_attn\.[qkv]_proj)",
        R"(.*\.(?:self_attn|mlp)\.(q|up)_proj)", R"(^model.*proj$)", ".*layers.1[0-5].*",
        R"(.*?\.\d{1,2}\..*?)", ".*q_pro?j+", "(?:model)(.layers|.visual){1,3}.+",
        "(?i)MODEL.*Q_PROJ", R"([^v]*\bself_attn\b[^v]*)", R"((?P<all>.*)q\x5fproj)",
        R"(model\.(?!visual).*q_proj)", R"((?:(?!visual).)*q_proj)", R"(.*\.(?=self)\w+\.q_\w+\Z)",
        "[]m][a-z.0-9_]+", "model[^]]+", "x*model.{27}", "()model.*|nothing"})
    EXPECT_TRUE(matches(pattern, kName)) << pattern;
  for (const char* const pattern : {"q_proj", ".*k_proj", "model", "", R"(.*\.q\.proj)", "MODEL.*",
                                    R"(.*\Bq_proj)", R"((?:(?!self_attn).)*q_proj)", "model.{26}",
                                    "model.{28,}", "[^m].*", R"(\d.*)", "x{2}model.*", "é.*"})
    EXPECT_FALSE(matches(pattern, kName)) << pattern;
}

TEST(NamePattern, RefusesByNameWhatItDoesNotEvaluate) {
  const std::pair<const char*, const char*> all[] = {{R"((q)\1)", "a back reference"},
                                                     {"(?<=a)b", "a look-behind"},
                                                     {"(?P=a)", "(?P"},
                                                     {"(?>a)", "(?>"},
                                                     {"a*+", "possessive"},
                                                     {"a(?i)b", "(?i"},
                                                     {"a**", "a quantifier after another"},
                                                     {"*a", "nothing to repeat"},
                                                     {"{2}", "nothing to repeat"},
                                                     {"(a", "a ( that nothing closes"},
                                                     {"a)", "a ) that nothing opens"},
                                                     {"[a", "a [ that nothing closes"},
                                                     {"[z-a]", "without an order"},
                                                     {R"(\q)", R"(the escape \q)"},
                                                     {"\\", R"(a \ at its end)"},
                                                     {"a{3,2}", "least is above its most"},
                                                     {"a{1001}", "above 1000"},
                                                     {"((a{1000}){1000}){1000}", "parts"}};
  for (const auto& [pattern, why] : all) {
    const auto compiled = NamePattern::compile(pattern);
    ASSERT_FALSE(compiled) << pattern;
    EXPECT_EQ(compiled.error().code, core::ErrorCode::kData);
    EXPECT_NE(compiled.error().message.find(why), std::string::npos)
        << pattern << ": " << compiled.error().message;
  }
  EXPECT_FALSE(NamePattern::compile(std::string(NamePattern::kBytes_max + 1, 'a')));
  EXPECT_FALSE(NamePattern::compile(std::string(1000, '(') + std::string(1000, ')')));
}

// Python takes longer for these than the world has been there.
TEST(NamePattern, IsBoundedWhateverItIsGiven) {
  const std::string name(64, 'a');
  EXPECT_FALSE(matches("(a*)*b", name));
  EXPECT_FALSE(matches("(a|aa)+$b", name));
  EXPECT_FALSE(matches("(?:(?:a+)+)+b", name));
  std::string ahead = "b";
  for (int i = 0; i < 40; ++i)
    ahead = "(?!(?:a?){9}" + ahead + ").*";
  const auto compiled = NamePattern::compile(ahead);
  ASSERT_TRUE(compiled) << compiled.error().message;
  static_cast<void>(compiled->matches(name));  // true, false or refused: it ends
  const auto large = NamePattern::compile("(?:(?!(?:a?){90}b)a){90}");
  ASSERT_TRUE(large) << large.error().message;
  const auto dear = large->matches(std::string(2000, 'a'));
  ASSERT_FALSE(dear);
  EXPECT_NE(dear.error().message.find("steps"), std::string::npos);
}

}  // namespace
}  // namespace troupe::parse
