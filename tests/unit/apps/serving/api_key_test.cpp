// Who is let in.
#include "apps/serving/api_key.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::app {
namespace {

TEST(ApiKeys, AdmitsWhoHasOneOfThem) {
  const ApiKeys keys({"sesame", "other"});
  EXPECT_TRUE(keys.admits("Bearer sesame"));
  EXPECT_TRUE(keys.admits("bearer other"));
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "Bearer sesam", "Bearer sesames", "Bearer Sesame", "Basic sesame",
        "sesame", "Bearer sesamesesame", "Bearer  sesame"}) {
    EXPECT_FALSE(keys.admits(wrong)) << wrong;
  }
  EXPECT_TRUE(ApiKeys().admits(""));
  EXPECT_FALSE(ApiKeys().any());
}

TEST(ApiKeys, AreGatheredFromFlagsAndAFile) {
  char path[] = "/tmp/troupe_keys_XXXXXX";
  ASSERT_GE(::mkstemp(path), 0);
  std::ofstream(path) << "one\r\n\ntwo\n";
  auto keys = ApiKeys::gather({"three"}, path);
  ASSERT_TRUE(keys) << keys.error().message;
  for (const char* key : {"one", "two", "three"})
    EXPECT_TRUE(keys->admits(std::string("Bearer ") + key)) << key;
  std::ofstream(path, std::ios::trunc) << "\n";
  EXPECT_FALSE(ApiKeys::gather({}, path));
  EXPECT_FALSE(ApiKeys::gather({"a b"}, ""));
  std::filesystem::remove(path);
  EXPECT_FALSE(ApiKeys::gather({}, path));
}

}  // namespace
}  // namespace troupe::app
