// Who is let in, and with which limits.
#include "apps/serving/api_key.hpp"

#include "runtime/dialects/client_key.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::serving {
namespace {

TEST(ApiKeys, FindsWhoHasOneOfThem) {
  const ApiKeys keys({{"sesame", "a", {}}, {"other", "b", {}}});
  EXPECT_EQ(keys.find(dialects::bearer_key("Bearer sesame")), 0u);
  EXPECT_EQ(keys.find(dialects::bearer_key("bearer other")), 1u);
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "Bearer sesam", "Bearer sesames", "Bearer Sesame", "Basic sesame",
        "sesame", "Bearer sesamesesame", "Bearer  sesame"}) {
    EXPECT_FALSE(keys.find(dialects::bearer_key(wrong))) << wrong;
  }
  EXPECT_FALSE(ApiKeys().find(""));
  EXPECT_FALSE(ApiKeys().any());
}

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() {
    char pattern[] = "/tmp/troupe_keys_XXXXXX";
    const int made = ::mkstemp(pattern);
    EXPECT_GE(made, 0);
    ::close(made);
    path_ = pattern;
  }
  ~KeyFile() override { std::filesystem::remove(path_); }
  core::Result<ApiKeys> gather(const std::string& text, std::vector<std::string> flags = {}) {
    std::ofstream(path_, std::ios::trunc) << text;
    return ApiKeys::gather(flags, path_);
  }
  std::string path_;
};

TEST_F(KeyFile, KeysOfFlagsAndTheFile) {
  const auto keys = gather("one\r\n\ntwo\n", {"three", "one"});
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->list().size(), 3u) << "one key given twice is one";
  for (const char* key : {"one", "two", "three"})
    EXPECT_TRUE(keys->find(key)) << key;
  EXPECT_EQ(keys->list()[2].name, "key-3");
  EXPECT_FALSE(ApiKeys::gather({"a b"}, ""));
  EXPECT_FALSE(ApiKeys::gather({""}, ""));
  EXPECT_FALSE(ApiKeys::gather({}, path_ + ".none"));
}

TEST_F(KeyFile, LimitsStandBehindAKey) {
  const auto keys = gather(
      "# of the tests\n"
      "one name=ci requests=8 requests_per_minute=60 tokens_per_minute=100000\n"
      "two   tokens_per_minute=5\n");
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->list().size(), 2u);
  const ApiKey& ci = keys->list()[0];
  EXPECT_EQ(ci.name, "ci");
  EXPECT_EQ(ci.limits.requests, 8);
  EXPECT_EQ(ci.limits.requests_per_minute, 60);
  EXPECT_EQ(ci.limits.tokens_per_minute, 100000);
  const ApiKey& two = keys->list()[1];
  EXPECT_EQ(two.name, "key-2");
  EXPECT_EQ(two.limits.requests, 0);
  EXPECT_EQ(two.limits.tokens_per_minute, 5);
}

TEST_F(KeyFile, WhereKeysAreTakenApartThoseWithTheWordControl) {
  const auto may = [&](const std::string& text, std::vector<std::string> flags = {}) {
    std::string out;
    const auto keys = gather(text, std::move(flags));
    EXPECT_TRUE(keys);
    for (const ApiKey& key : keys->list())
      out += key.control ? 'y' : 'n';
    return out;
  };
  EXPECT_EQ(may("one\ntwo\n"), "yy") << "nothing is said of any";
  EXPECT_EQ(may("one name=ci\ntwo\n"), "nn");
  EXPECT_EQ(may("one name=ci\ntwo control\n"), "ny");
  EXPECT_EQ(may("one control requests=2\ntwo\n", {"three"}), "yny") << "a flag's always may";
}

TEST_F(KeyFile, RefusesOtherLinesByTheirNumberWithoutTheKey) {
  struct Wrong {
    const char* text;
    const char* says;
  };
  for (const Wrong& one :
       {Wrong{"\n", "no key in"},
        {"# only\n", "no key in"},
        {"good\nsecret other\n", "line 2 of"},
        {"secret request=1\n", "stand only name="},
        {"secret requests=0\n", "requests= takes a whole"},
        {"secret requests=-1\n", "requests= takes a whole"},
        {"secret requests=1x\n", "requests= takes a whole"},
        {"secret requests\n", "requests= takes"},
        {"secret tokens_per_minute=1e5\n", "tokens_per_minute= takes a whole"},
        {"secret requests_per_minute=99999999999999999999\n", "requests_per_minute= takes"},
        {"secret name=\n", "name= takes"},
        {"secret name=a\"b\n", "name= takes"},
        {"secret name=a\nother name=a\n", "two keys have the name a"},
        {"secret\nother name=key-1\n", "two keys have the name key-1"},
        {"secret\nsecret requests=1\n", "stands twice"}}) {
    const auto keys = gather(one.text);
    ASSERT_FALSE(keys) << one.text;
    EXPECT_EQ(keys.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(keys.error().message.find("--api-key-file"), std::string::npos);
    EXPECT_NE(keys.error().message.find(one.says), std::string::npos) << keys.error().message;
    EXPECT_EQ(keys.error().message.find("secret"), std::string::npos) << keys.error().message;
  }
}

}  // namespace
}  // namespace troupe::serving
