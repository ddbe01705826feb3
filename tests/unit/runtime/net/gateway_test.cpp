// Everybody whom a gateway must refuse, over real sockets; after each of them the gateway goes on.
#include "runtime/net/gateway.hpp"

#include "runtime/core/open_files.hpp"
#include "runtime/net/certificate.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/tls_context.hpp"
#include "tests/unit/runtime/net/gateway_support.hpp"

#include <openssl/pem.h>

#include <algorithm>

namespace troupe::net::test {
namespace {

class GatewayTest : public GatewayFixture {
 protected:
  // An expired node certificate signed by the CA in `folder`.
  void expire(const std::filesystem::path& folder) {
    const auto read = [&](const char* name, auto&& reader) {
      const BioPtr file(BIO_new_file((folder / name).c_str(), "r"));
      return reader(file.get());
    };
    const CertificatePtr ca(
        read("ca.crt", [](BIO* f) { return PEM_read_bio_X509(f, nullptr, nullptr, nullptr); }));
    const KeyPtr ca_key(read(
        "ca.key", [](BIO* f) { return PEM_read_bio_PrivateKey(f, nullptr, nullptr, nullptr); }));
    const KeyPtr key(read(
        "node.key", [](BIO* f) { return PEM_read_bio_PrivateKey(f, nullptr, nullptr, nullptr); }));
    CertificateSpec spec;
    spec.common_name = "node";
    spec.valid_from_s = -7200;
    spec.valid_to_s = -3600;
    auto made = make_certificate(spec, key.get(), ca.get(), ca_key.get());
    ASSERT_TRUE(made);
    const BioPtr file(BIO_new_file((folder / "node.crt").c_str(), "w"));
    PEM_write_bio_X509(file.get(), made->get());
  }
  // A client with these files that checks nothing itself.
  static void show(TlsClient& client, const GatewayAuth& auth) {
    SSL_CTX_use_certificate_chain_file(client.context.get(), auth.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(client.context.get(), auth.key.c_str(), SSL_FILETYPE_PEM);
  }
  // Wrong proofs, one after the other.
  void fail(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      EXPECT_FALSE(tunnel(token_auth(*make_token())));
    }
  }
  std::size_t lines() {
    const std::string text = log_.text();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // In TLS 1.3 a client learns of a refused certificate when it reads.
  static bool turned_away(TlsClient& client) {
    return !client.connect() || client.receive(1).empty();
  }
  static std::string hello(char errand = 2, const std::string& service = "echo") {
    return std::string("TRDP\1", 5) + errand + '\0' + static_cast<char>(service.size()) +
           std::string(32, 'n') + service;
  }
};

}  // namespace

TEST_F(GatewayTest, PlainTextIsRefused) {
  open_gateway(token_auth(token_));
  Socket socket = Socket::to(gateway_->port());
  socket.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(log_.saw("TLS handshake: http request")) << log_.text();
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, AGibibyteLengthPrefixIsRefused) {
  open_gateway(token_auth(token_));
  Socket socket = Socket::to(gateway_->port());
  socket.send(std::string("\x40\0\0\0", 4) + std::string(1000, 'x'));
  EXPECT_TRUE(log_.saw("TLS handshake: ")) << log_.text();
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, SilenceIsCutOff) {
  open_gateway(token_auth(token_));
  Socket socket = Socket::to(gateway_->port());
  EXPECT_TRUE(socket.closed());
  EXPECT_TRUE(log_.saw("no proof within 1000 ms")) << log_.text();
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, AByteAtATimeIsCutOff) {
  open_gateway(token_auth(token_));
  Socket socket = Socket::to(gateway_->port());
  // The head of a TLS record of 512 bytes, then one byte whenever nothing has come for a while.
  ASSERT_TRUE(socket.send(std::string("\x16\x03\x01\x02\x00", 5)));
  bool refused = false;
  for (int i = 0; i < 400 && !refused; ++i) {
    pollfd one{socket.fd(), POLLIN, 0};
    refused = ::poll(&one, 1, 50) > 0;
    if (!refused) socket.send("x");
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(log_.saw("no proof within 1000 ms")) << log_.text();
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, SilenceBehindAHandshakeIsCutOff) {
  open_gateway(token_auth(token_));
  TlsClient client(gateway_->port());
  ASSERT_TRUE(client.connect());
  EXPECT_EQ(client.receive(1), "");
  EXPECT_TRUE(log_.saw("no proof within 1000 ms")) << log_.text();
}

TEST_F(GatewayTest, TlsOneTwoIsRefused) {
  open_gateway(token_auth(token_));
  TlsClient client(gateway_->port());
  SSL_CTX_set_max_proto_version(client.context.get(), TLS1_2_VERSION);
  EXPECT_FALSE(client.connect());
  EXPECT_TRUE(log_.saw("unsupported protocol")) << log_.text();
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, AWrongTokenIsRefusedOnBothSides) {
  open_gateway(token_auth(token_));
  auto wrong = tunnel(token_auth(*make_token()));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(wrong.error().message.find("join token"), std::string::npos) << wrong.error().message;
  EXPECT_TRUE(log_.saw("wrong join token"));
  EXPECT_EQ(passes_, 0);
  EXPECT_EQ(echo_.accepted, 0);
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, MalformedHellosAreRefused) {
  open_gateway(token_auth(token_));
  std::string other_version = hello();
  other_version[4] = 9;
  std::string long_name = hello();
  long_name[7] = static_cast<char>(255);
  for (const std::string& bytes : {std::string(40, 'x'), other_version, long_name, hello(7)}) {
    TlsClient client(gateway_->port());
    ASSERT_TRUE(client.connect());
    ASSERT_TRUE(client.send(bytes));
    EXPECT_EQ(client.receive(1), "");
  }
  EXPECT_TRUE(log_.saw("does not speak the gateway's protocol"));
  EXPECT_TRUE(log_.saw("version 9"));
  EXPECT_TRUE(log_.saw("malformed"));
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, AForgedProofIsRefused) {
  open_gateway(token_auth(token_));
  TlsClient client(gateway_->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send(hello()));
  EXPECT_EQ(client.receive(32).size(), 32u);
  ASSERT_TRUE(client.send(std::string(32, 'p')));
  EXPECT_EQ(client.receive(1), "\1");
  EXPECT_TRUE(log_.saw("wrong join token"));
  EXPECT_EQ(echo_.accepted, 0);
}

// Somebody between client and gateway ends the TLS session of each and passes on what they say: the
// proofs do not fit his sessions. The recorded bytes are of no use later either.
TEST_F(GatewayTest, AManInTheMiddleAndAReplayAreRefused) {
  open_gateway(token_auth(token_));
  auto context = make_gateway_context(token_auth(*make_token()));
  ASSERT_TRUE(context);
  std::string said;
  LocalServer middle([&](Socket socket) {
    const SslPtr ssl(SSL_new(context->get()));
    SSL_set_fd(ssl.get(), socket.fd());
    if (SSL_accept(ssl.get()) != 1) return;
    TlsClient onwards(gateway_->port());
    if (!onwards.connect()) return;
    const auto relay = [&](int size) {
      std::string bytes(static_cast<std::size_t>(size), '\0');
      for (int got = 0; got < size;) {
        const int n = SSL_read(ssl.get(), bytes.data() + got, size - got);
        if (n <= 0) return;
        got += n;
      }
      said += bytes;
      onwards.send(bytes);
    };
    relay(40 + 4);
    const std::string nonce = onwards.receive(32);
    SSL_write(ssl.get(), nonce.data(), 32);
    relay(32);
    const std::string verdict = onwards.receive(4096);
    SSL_write(ssl.get(), verdict.data(), static_cast<int>(verdict.size()));
  });
  auto fooled = tunnel_to(middle.port, token_auth(token_));
  ASSERT_FALSE(fooled);
  EXPECT_EQ(fooled.error().code, core::ErrorCode::kConfig) << fooled.error().message;
  EXPECT_TRUE(log_.saw("wrong join token"));
  ASSERT_EQ(said.size(), 76u);
  TlsClient again(gateway_->port());
  ASSERT_TRUE(again.connect());
  ASSERT_TRUE(again.send(said));
  EXPECT_EQ(again.receive(33).substr(32), "\1");
  EXPECT_EQ(passes_, 0);
  expect_open(token_auth(token_));
}

TEST_F(GatewayTest, AGatewayWithoutTheTokenIsNotBelieved) {
  auto context = make_gateway_context(token_auth(*make_token()));
  ASSERT_TRUE(context);
  LocalServer impostor([&](Socket socket) {
    const SslPtr ssl(SSL_new(context->get()));
    SSL_set_fd(ssl.get(), socket.fd());
    if (SSL_accept(ssl.get()) != 1) return;
    char buffer[4096];
    SSL_read(ssl.get(), buffer, sizeof buffer);
    SSL_write(ssl.get(), buffer, 32);
    SSL_read(ssl.get(), buffer, sizeof buffer);
    const std::string welcome(35, '\0');
    SSL_write(ssl.get(), welcome.data(), 35);
    SSL_read(ssl.get(), buffer, sizeof buffer);
  });
  auto fooled = tunnel_to(impostor.port, token_auth(token_));
  ASSERT_FALSE(fooled);
  EXPECT_EQ(fooled.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(fooled.error().message.find("could not prove"), std::string::npos);
}

TEST_F(GatewayTest, ACertificateOfAnotherCaIsRefusedOnBothSides) {
  const GatewayAuth ours = ca_auth("ours"), theirs = ca_auth("theirs");
  open_gateway(ours);
  TlsClient client(gateway_->port());
  show(client, theirs);
  EXPECT_TRUE(turned_away(client));
  EXPECT_TRUE(log_.saw("certificate verify failed")) << log_.text();
  auto other = tunnel(theirs);  // which does not trust the gateway
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("certificate verify failed"), std::string::npos)
      << other.error().message;
  expect_open(ours);
}

TEST_F(GatewayTest, AnExpiredCertificateIsRefused) {
  const GatewayAuth good = ca_auth("good");
  open_gateway(good);
  const auto late_folder = scratch_.path / "late";
  std::filesystem::copy(scratch_.path / "good", late_folder);
  expire(late_folder);
  const GatewayAuth late = auth_in(late_folder);
  TlsClient client(gateway_->port());
  show(client, late);
  EXPECT_TRUE(turned_away(client));
  EXPECT_TRUE(log_.saw("certificate has expired")) << log_.text();
  auto own = tunnel(late);  // says so before it dials
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(own.error().message.find("expired"), std::string::npos) << own.error().message;
  expect_open(good);
}

TEST_F(GatewayTest, NoCertificateIsRefused) {
  const GatewayAuth good = ca_auth("good");
  open_gateway(good);
  TlsClient client(gateway_->port());
  EXPECT_TRUE(turned_away(client));
  EXPECT_TRUE(log_.saw("did not return a certificate")) << log_.text();
  EXPECT_FALSE(tunnel(token_auth(token_)));
  expect_open(good);
}

TEST_F(GatewayTest, ACertificateThatNamesHostsNamesThisOne) {
  const GatewayAuth elsewhere = ca_auth("elsewhere", {"10.9.8.7", "trainer.example"});
  open_gateway(elsewhere);
  auto refused = tunnel(elsewhere);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("does not name 127.0.0.1"), std::string::npos)
      << refused.error().message;
  const GatewayAuth here = ca_auth("here", {"127.0.0.1"});
  open_gateway(here);
  expect_open(here);
}

TEST_F(GatewayTest, TheSixthAttemptAfterFiveWrongProofsIsRefusedAtOnce) {
  open_gateway(token_auth(token_), "0.0.0.0");
  fail(limits::kGatewayFailures_max);
  EXPECT_TRUE(log_.saw("refused at once")) << log_.text();
  EXPECT_FALSE(tunnel(token_auth(token_)));  // nobody from there has ever proved himself
  EXPECT_EQ(passes_, 0);
  // Others are not affected: the same gateway by another address of ours.
  Socket other(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in from = {};
  from.sin_family = AF_INET;
  ::inet_pton(AF_INET, "127.0.0.2", &from.sin_addr);
  ASSERT_EQ(::bind(other.fd(), reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
  sockaddr_in to = from;
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  to.sin_port = htons(gateway_->port());
  ASSERT_EQ(::connect(other.fd(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), other.fd());
  EXPECT_EQ(SSL_connect(ssl.get()), 1);
}

// What comes before a handshake anybody can send, in anybody's name: it keeps nobody out.
TEST_F(GatewayTest, GarbageFromAnAddressLocksNobodyOut) {
  open_gateway(token_auth(token_));
  for (int i = 0; i < 20; ++i) {
    Socket socket = Socket::to(gateway_->port());
    socket.send("no TLS\n");
    EXPECT_TRUE(socket.closed());
  }
  expect_open(token_auth(token_));
  EXPECT_LE(lines(), 7u) << log_.text();
}

// Who is carried, or was, goes in and out as before, whatever others send from his address.
TEST_F(GatewayTest, WhoHasProvedHimselfIsNotLockedOut) {
  open_gateway(token_auth(token_));
  expect_open(token_auth(token_));
  fail(3 * limits::kGatewayFailures_max);
  for (int i = 0; i < 3; ++i)
    expect_open(token_auth(token_));
  EXPECT_FALSE(log_.has("refused at once")) << log_.text();
  EXPECT_LE(lines(), 7u) << log_.text();
}

// More than may be unproven at once: those who say nothing make room.
TEST_F(GatewayTest, ACrowdOfSilentOnesKeepsNobodyOut) {
  open_gateway(token_auth(token_), "0.0.0.0");
  std::vector<Socket> crowd;
  for (std::uint64_t i = 0; i < limits::kGatewayPending_max + 36; ++i)
    crowd.push_back(Socket::to(gateway_->port(), "127.0.0.3"));
  expect_open(token_auth(token_));
  for (const Socket& one : crowd)
    EXPECT_TRUE(one.closed());
  EXPECT_TRUE(log_.saw("said nothing while others waited")) << log_.text();
}

TEST_F(GatewayTest, AsManyAsItCarriesAndOneMoreIsToldSo) {
  core::raise_open_files_max();
  open_gateway(token_auth(token_));
  auto way = tunnel(token_auth(token_));
  ASSERT_TRUE(way) << way.error().message;
  auto other = tunnel(token_auth(token_));
  ASSERT_TRUE(other) << other.error().message;
  std::vector<Socket> carried;
  for (std::uint64_t i = 0; i < limits::kGatewayConnections_max; ++i) {
    carried.push_back(Socket::to((*way)->path()));
    ASSERT_TRUE(carried.back().send("x"));
    ASSERT_EQ(carried.back().receive(1), "x") << i;
  }
  EXPECT_TRUE(Socket::to((*other)->path()).closed());
  const std::string full =
      "carries " + std::to_string(limits::kGatewayConnections_max) + " connections already";
  EXPECT_TRUE(tunnel_log_.saw(full)) << tunnel_log_.text();
  EXPECT_TRUE(log_.saw(full));
}

TEST_F(GatewayTest, ThereIsNoGatewayWithoutAProof) {
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    auto open = Gateway::open(host, 0, {}, {}, {});
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().code, core::ErrorCode::kConfig);
  }
  GatewayAuth both = ca_auth("both");
  both.token = token_;
  EXPECT_FALSE(Gateway::open("127.0.0.1", 0, both, {}, {}));
  EXPECT_FALSE(Gateway::open("127.0.0.1", 0, token_auth("1234"), {}, {}));
  GatewayAuth keyless = ca_auth("keyless");
  keyless.key.clear();
  EXPECT_FALSE(Gateway::open("127.0.0.1", 0, keyless, {}, {}));
  GatewayAuth open_key = ca_auth("open_key");
  std::filesystem::permissions(open_key.key, std::filesystem::perms(0644));
  auto refused = Gateway::open("127.0.0.1", 0, open_key, {}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("chmod 600"), std::string::npos);
}

TEST_F(GatewayTest, ATakenPortIsNamed) {
  open_gateway(token_auth(token_));
  auto second = Gateway::open("127.0.0.1", gateway_->port(), token_auth(token_), {}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::ErrorCode::kResources);
  EXPECT_NE(second.error().message.find(std::to_string(gateway_->port())), std::string::npos);
}

}  // namespace troupe::net::test
