// URLs as users type them, and those that are refused with a reason.
#include "runtime/net/url.hpp"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

TEST(Url, TakesHostPortPathAndQuery) {
  auto url = parse_url("http://reward-1.example:5000/get_reward?x=1");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(url->host, "reward-1.example");
  EXPECT_EQ(url->port, 5000);
  EXPECT_EQ(url->target, "/get_reward?x=1");
  EXPECT_EQ(url->host_header, "reward-1.example:5000");
}

TEST(Url, KnowsTheUsualPortsAndAnEmptyPath) {
  EXPECT_EQ(parse_url("http://a")->port, 80);
  EXPECT_EQ(parse_url("https://a")->port, 443);
  EXPECT_TRUE(parse_url("https://a")->tls);
  EXPECT_EQ(parse_url("http://a")->target, "/");
  EXPECT_EQ(parse_url("http://a?x=1")->target, "/?x=1");
}

TEST(Url, TakesIpv6InBrackets) {
  auto url = parse_url("http://[::1]:5000/");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 5000);
  EXPECT_EQ(url->host_header, "[::1]:5000");
}

TEST(Url, RefusesWhatItCannotMean) {
  for (const char* text :
       {"", "a", "ftp://a", "http://", "http:///x", "http://:80", "http://a:", "http://a:0",
        "http://a:65536", "http://a:8x", "http://a:-1", "http://a b/", "http://a/\r\nX: y",
        "http://a/#x", "http://[::1", "http://[::1]x", "http://a\\b/", "http://a:1:2/"}) {
    auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, core::ErrorCode::kConfig);
  }
}

TEST(Url, NeverRepeatsAPassword) {
  auto url = parse_url("http://me:secret@a/");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace troupe::net
