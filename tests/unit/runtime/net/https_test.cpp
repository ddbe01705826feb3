// The HTTP server with TLS: requests, streams, large bodies, clients that speak no TLS or go away,
// and files that cannot be used.
#include "runtime/async/deadline.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/net/run_ca.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

#include <openssl/pem.h>

#include <future>

namespace troupe::net::test {
namespace {

class Lines final : public HttpStream {
 public:
  async::task<std::optional<std::string>> next() override {
    if (left_ == 0) co_return std::nullopt;
    co_return std::optional<std::string>("data: " + std::to_string(left_--) + "\n\n");
  }

 private:
  int left_ = 3;
};

class Https : public ::testing::Test {
 protected:
  Https() {
    RunCaOptions options;
    options.folder = scratch_.path;
    EXPECT_TRUE(make_run_ca(options));
  }
  HttpsFiles files() const { return {scratch_.path / "node.crt", scratch_.path / "node.key"}; }
  void open(HttpServer::Handler handler, HttpServerOptions options = {}) {
    auto tls = HttpsContext::load(files());
    ASSERT_TRUE(tls) << tls.error().message;
    options.tls = *tls;
    auto server = HttpServer::open(io_, std::move(options), std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  // Answers with path and size of the body; /s is a stream.
  static async::task<HttpResponse> echo(HttpRequest request) {
    HttpResponse response;
    response.body = request.path + " " + std::to_string(request.body.size());
    if (request.path == "/s") response.stream = std::make_shared<Lines>();
    co_return response;
  }
  static std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }
  static std::string until(TlsClient& client, const std::string& end) {
    std::string all;
    while (all.find(end) == all.npos) {
      const std::string byte = client.receive(1);
      if (byte.empty()) break;
      all += byte;
    }
    return all;
  }
  std::string failure(const HttpsFiles& given) const {
    const auto loaded = HttpsContext::load(given);
    return loaded ? "loaded" : loaded.error().message;
  }
  std::filesystem::path written(const std::string& name, const std::string& text) const {
    const auto path = scratch_.path / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path;
  }

  Scratch scratch_;
  async::IoThreads io_{1};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Https, ConnectionsWithoutAHandshakeGiveWay) {
  HttpServerOptions options;
  options.connections_max = 8;
  open(&Https::echo, options);
  std::vector<Socket> silent;
  for (int i = 0; i < 8; ++i) {
    silent.push_back(Socket::to(server_->port()));
    if (i % 2 == 1) continue;
    ASSERT_TRUE(silent.back().send("\x16\x03\x01"));  // as a handshake begins
  }
  std::vector<std::unique_ptr<TlsClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TlsClient>(server_->port()));
    ASSERT_TRUE(clients.back()->connect());
    // The request stays under way, so that this one does not give way.
    ASSERT_TRUE(
        clients.back()->send("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"));
  }
  for (const Socket& one : silent)
    EXPECT_TRUE(one.closed());
  for (const auto& client : clients) {
    ASSERT_TRUE(client->send("x"));
    EXPECT_TRUE(until(*client, "/a 1").starts_with("HTTP/1.1 200"));
  }
}

TEST_F(Https, AConnectionAnswersRequestsAndStreamsOneAfterAnother) {
  open(&Https::echo);
  TlsClient client(server_->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send(get("/a")));
  EXPECT_TRUE(until(client, "/a 0").ends_with("\r\n\r\n/a 0"));
  ASSERT_TRUE(client.send(get("/s") + get("/b")));
  const std::string reply = until(client, "/b 0");
  EXPECT_NE(
      reply.find("data: 3\n\n\r\n9\r\ndata: 2\n\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\nHTTP/1.1 200"),
      std::string::npos)
      << reply;
  const std::string size = std::to_string(3u << 20);
  ASSERT_TRUE(
      client.send("POST /c HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Content-Length: " +
                  size + "\r\n\r\n" + std::string(3u << 20, 'x')));
  EXPECT_TRUE(until(client, "/c " + size).ends_with("/c " + size));
  EXPECT_EQ(client.receive(1), "");
  EXPECT_EQ(SSL_get_shutdown(client.ssl.get()) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN)
      << "the end is said, so it cannot be forged";
}

TEST_F(Https, ARefusedBodyIsAnsweredBeforeTheEnd) {
  HttpServerOptions options;
  options.body_bytes_max = 1000;
  open(&Https::echo, options);
  TlsClient client(server_->port());
  ASSERT_TRUE(client.connect());
  ASSERT_TRUE(client.send("POST /c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n" +
                          std::string(200'000, 'x')));
  EXPECT_TRUE(until(client, "too large").starts_with("HTTP/1.1 413"));
}

TEST_F(Https, WhoSpeaksNoTlsIsToldSo) {
  open(&Https::echo);
  const Socket plain = Socket::to(server_->port());
  ASSERT_TRUE(plain.send(get("/a")));
  const std::string reply = plain.receive();
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 400")) << reply;
  EXPECT_NE(reply.find("use https://"), std::string::npos) << reply;
  const Socket broken = Socket::to(server_->port());
  ASSERT_TRUE(broken.send(std::string("\x16\x03\x01\x00\x05hello", 10)));
  broken.receive();
  TlsClient client(server_->port());
  ASSERT_TRUE(client.connect()) << "others are served";
}

TEST_F(Https, OldVersionsOfTlsAreRefused) {
  open(&Https::echo);
  for (const auto& [version, taken] :
       {std::pair(TLS1_1_VERSION, false), {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}}) {
    TlsClient client(server_->port());
    SSL_CTX_set_security_level(client.context.get(), 0);
    SSL_CTX_set_min_proto_version(client.context.get(), version);
    SSL_CTX_set_max_proto_version(client.context.get(), version);
    EXPECT_EQ(client.connect(), taken) << version;
    ERR_clear_error();
  }
}

// With and without close_notify; the handler waits for nothing else.
TEST_F(Https, AClientThatGoesIsNoticed) {
  std::promise<void> begun[2], gone[2];
  std::atomic<int> number{0};
  HttpServerOptions options;
  options.watch_clients = true;
  async::SteadyTimers timers;
  open(
      [&](HttpRequest request) -> async::task<HttpResponse> {
        const int i = number++;
        request.client->on_gone([&gone, i] { gone[i].set_value(); });
        begun[i].set_value();
        auto waiting = async::sleep_for(timers, std::chrono::hours(1));
        co_await std::move(waiting);
        co_return HttpResponse();
      },
      options);
  for (const bool says_goodbye : {false, true}) {
    TlsClient client(server_->port());
    ASSERT_TRUE(client.connect());
    ASSERT_TRUE(client.send(get("/a")));
    // Only then is the goodbye no part of what the server has read with the request.
    begun[says_goodbye ? 1 : 0].get_future().wait();
    if (says_goodbye) SSL_shutdown(client.ssl.get());
    client.socket.end();
    EXPECT_EQ(gone[says_goodbye ? 1 : 0].get_future().wait_for(kPatience),
              std::future_status::ready);
  }
}

TEST_F(Https, FilesThatCannotBeUsedAreNamed) {
  EXPECT_EQ(failure(files()), "loaded");
  const auto ours = files();
  const auto none = scratch_.path / "none.pem";
  EXPECT_NE(failure({none, ours.key}).find("cannot read the certificate " + none.string()),
            std::string::npos);
  EXPECT_NE(failure({ours.certificate, none}).find("cannot read the key " + none.string()),
            std::string::npos);
  const auto junk = written("junk.pem", "no PEM");
  EXPECT_NE(failure({junk, ours.key}).find("no certificate in PEM in " + junk.string()),
            std::string::npos);
  EXPECT_NE(failure({ours.certificate, junk}).find("no key in PEM"), std::string::npos);
  EXPECT_NE(failure({ours.certificate, scratch_.path / "ca.key"}).find("is not that of the"),
            std::string::npos);
  std::filesystem::permissions(ours.key, std::filesystem::perms(0644));
  EXPECT_NE(failure(ours).find("chmod 600"), std::string::npos);
}

// OpenSSL would ask for the password at the terminal.
TEST_F(Https, AnEncryptedKeyIsRefused) {
  std::FILE* const in = std::fopen(files().key.c_str(), "r");
  const KeyPtr key(PEM_read_PrivateKey(in, nullptr, nullptr, nullptr));
  std::fclose(in);
  const BioPtr out(BIO_new(BIO_s_mem()));
  char password[] = "sesame";
  ASSERT_EQ(
      PEM_write_bio_PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(),
                               reinterpret_cast<unsigned char*>(password), 6, nullptr, nullptr),
      1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  const auto locked = written("locked.key", std::string(text, static_cast<std::size_t>(size)));
  EXPECT_NE(failure({files().certificate, locked}).find("an encrypted one"), std::string::npos);
}

}  // namespace
}  // namespace troupe::net::test
