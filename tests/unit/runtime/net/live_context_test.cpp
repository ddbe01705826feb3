// Certificates that change while a gateway and its tunnels run: which are used, what is said.
#include "runtime/net/live_context.hpp"

#include "runtime/net/certificate.hpp"
#include "tests/unit/runtime/net/gateway_support.hpp"

#include <openssl/pem.h>

#include <future>

namespace troupe::net::test {
namespace {

constexpr std::time_t kDay = 86'400;

class LiveContextTest : public GatewayFixture {
 protected:
  GatewayAuth files(const std::string& name, int days = 30) {
    RunCaOptions options;
    options.folder = scratch_.path / name;
    options.days = days;
    EXPECT_TRUE(make_run_ca(options));
    return auth_in(options.folder);
  }
  // Puts a copy of `from` into the place of `to`, in one step.
  static void replace(const std::filesystem::path& to, const std::filesystem::path& from) {
    const auto fresh = to.string() + ".new";
    std::filesystem::copy_file(from, fresh);
    std::filesystem::rename(fresh, to);
  }
  static void replace_all(const GatewayAuth& to, const GatewayAuth& from) {
    replace(to.ca, from.ca);
    replace(to.certificate, from.certificate);
    replace(to.key, from.key);
  }
  LiveContext open(const GatewayAuth& auth) {
    auto made = LiveContext::open(auth, LiveContext::Side::kGateway,
                                  [this](const std::string& line) { news_.push_back(line); });
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }
  static std::string serial(SSL_CTX* context) {
    const ASN1_INTEGER* number = X509_get0_serialNumber(SSL_CTX_get0_certificate(context));
    const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> value(ASN1_INTEGER_to_BN(number, nullptr));
    char* const text = BN_bn2hex(value.get());
    const std::string hex = text;
    OPENSSL_free(text);
    return hex;
  }
  // Puts a node's certificate of so many seconds, signed by a CA of so many, into the folder.
  static void write_chain(const GatewayAuth& to, long node_s, long ca_s) {
    const auto ca_key = *make_key(), key = *make_key();
    CertificateSpec spec;
    spec.common_name = "CA";
    spec.authority = true;
    spec.valid_to_s = ca_s;
    const auto ca = *make_certificate(spec, ca_key.get(), nullptr, nullptr);
    spec.authority = false;
    spec.common_name = "node";
    spec.valid_to_s = node_s;
    const auto node = *make_certificate(spec, key.get(), ca.get(), ca_key.get());
    const auto write = [](const std::filesystem::path& path, const auto& put) {
      std::FILE* const file = std::fopen(path.c_str(), "w");
      EXPECT_EQ(put(file), 1);
      std::fclose(file);
    };
    write(to.ca, [&](std::FILE* file) { return PEM_write_X509(file, ca.get()); });
    write(to.certificate, [&](std::FILE* file) { return PEM_write_X509(file, node.get()); });
    write(to.key, [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  std::vector<std::string> news_;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_F(LiveContextTest, ReadsFilesThatChangedAndOnlyThose) {
  const GatewayAuth auth = files("one"), other = files("two");
  LiveContext context = open(auth);
  SSL_CTX* const before = context.current();
  const std::string old = serial(before);
  EXPECT_EQ(context.current(), before);
  EXPECT_TRUE(news_.empty());
  replace_all(auth, other);
  const std::string now = serial(context.current());
  EXPECT_NE(now, old);
  EXPECT_EQ(now, serial(open(other).current()));
  ASSERT_EQ(news_.size(), 1u);
  EXPECT_TRUE(holds(news_[0], "read again; " + auth.certificate.string() + " holds until"))
      << news_[0];
}

TEST_F(LiveContextTest, FilesThatDoNotGoTogetherLeaveTheOldOnesInUse) {
  const GatewayAuth auth = files("one"), other = files("two");
  LiveContext context = open(auth);
  const std::string old = serial(context.current());
  replace(auth.certificate, other.certificate);
  EXPECT_EQ(serial(context.current()), old);
  EXPECT_EQ(serial(context.current()), old);
  ASSERT_EQ(news_.size(), 1u) << "said once";
  EXPECT_TRUE(holds(news_[0], "cannot be used; the old ones stay")) << news_[0];
  replace(auth.ca, other.ca);
  EXPECT_EQ(serial(context.current()), old);
  replace(auth.key, other.key);
  EXPECT_NE(serial(context.current()), old);
  ASSERT_EQ(news_.size(), 3u);
  EXPECT_TRUE(holds(news_[2], "read again")) << news_[2];
}

TEST_F(LiveContextTest, BadFilesLeaveTheOldOnesInUse) {
  const GatewayAuth auth = files("one");
  LiveContext context = open(auth);
  const std::string old = serial(context.current());
  const auto kept = scratch_.path / "key";
  std::filesystem::rename(auth.key, kept);
  EXPECT_EQ(serial(context.current()), old);
  EXPECT_TRUE(holds(news_.back(), "there is no key file")) << news_.back();
  std::filesystem::rename(kept, auth.key);
  std::filesystem::permissions(auth.key, std::filesystem::perms(0644));
  std::ofstream(auth.certificate) << "no PEM";
  EXPECT_EQ(serial(context.current()), old);
  EXPECT_TRUE(holds(news_.back(), "chmod 600")) << news_.back();
  std::filesystem::permissions(auth.key, std::filesystem::perms(0600));
  std::ofstream(auth.certificate) << "still no PEM";
  EXPECT_EQ(serial(context.current()), old);
  EXPECT_TRUE(holds(news_.back(), "cannot read the certificate")) << news_.back();
  write_chain(auth, -100, kDay);
  EXPECT_EQ(serial(context.current()), old);
  EXPECT_TRUE(holds(news_.back(), "expired")) << news_.back();
}

TEST_F(LiveContextTest, WarnsFromSevenDaysBeforeTheEndOnceADay) {
  LiveContext context = open(files("one", 30));
  const std::time_t start = std::time(nullptr);
  for (const int day : {0, 10, 22})
    context.current(start + day * kDay);
  EXPECT_TRUE(news_.empty()) << news_[0];
  context.current(start + 23 * kDay + 60);
  ASSERT_EQ(news_.size(), 1u);
  EXPECT_TRUE(holds(news_[0], " expires on ")) << news_[0];
  context.current(start + 23 * kDay + 3600);
  EXPECT_EQ(news_.size(), 1u) << "said today";
  context.current(start + 24 * kDay + 60);
  EXPECT_EQ(news_.size(), 2u);
  context.current(start + 31 * kDay);
  ASSERT_EQ(news_.size(), 3u);
  EXPECT_TRUE(holds(news_[2], " expired on ")) << news_[2];
}

TEST_F(LiveContextTest, ACaThatEndsFirstIsWarnedOf) {
  const GatewayAuth auth = files("one");
  LiveContext context = open(auth);
  context.current();
  EXPECT_TRUE(news_.empty());
  write_chain(auth, 300 * kDay, 6 * kDay);
  context.current();
  ASSERT_EQ(news_.size(), 2u);
  EXPECT_TRUE(holds(news_[1], "or its CA expires on")) << news_[1];
}

TEST_F(LiveContextTest, NewFilesEndTheWarnings) {
  const GatewayAuth auth = files("one", 5);
  LiveContext context = open(auth);
  context.current();
  ASSERT_EQ(news_.size(), 1u);
  replace_all(auth, files("two", 30));
  context.current(std::time(nullptr) + 2 * kDay);
  ASSERT_EQ(news_.size(), 2u);
  EXPECT_TRUE(holds(news_[1], "read again"));
}

TEST_F(LiveContextTest, ATokenNeedsNoFiles) {
  LiveContext context = open(token_auth(token_));
  SSL_CTX* const only = context.current();
  EXPECT_EQ(context.current(std::time(nullptr) + 1000 * kDay), only);
  EXPECT_TRUE(news_.empty());
}

// Both ends take the new files for new connections; what is open goes on.
TEST_F(LiveContextTest, AGatewayAndATunnelChangeOverWhileTheyRun) {
  const GatewayAuth auth = files("one"), old = files("old"), other = files("two");
  replace_all(old, auth);
  open_gateway(auth);
  auto way = tunnel(auth);
  ASSERT_TRUE(way) << way.error().message;
  const Socket before = Socket::to((*way)->path());
  ASSERT_TRUE(before.send("first"));
  ASSERT_EQ(before.receive(5), "first");
  replace_all(auth, other);
  const Socket after = Socket::to((*way)->path());
  ASSERT_TRUE(after.send("second"));
  EXPECT_EQ(after.receive(6), "second") << log_.text() << tunnel_log_.text();
  ASSERT_TRUE(before.send("still"));
  EXPECT_EQ(before.receive(5), "still");
  EXPECT_TRUE(certificates_.saw("read again")) << "the gateway";
  EXPECT_TRUE(tunnel_log_.saw("read again")) << "the tunnel";
  EXPECT_FALSE(tunnel(old)) << "the old CA is trusted no more";
  expect_open(other);
}

TEST_F(LiveContextTest, AGatewayToWhichNobodyComesWarnsToo) {
  open_gateway(files("one", 6));
  EXPECT_TRUE(certificates_.saw(" expires on "));
}

}  // namespace troupe::net::test
