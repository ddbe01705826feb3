// The HTTP server and client over real sockets: what they exchange, and what they refuse.
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/http_address.hpp"
#include "runtime/net/http_client.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/net/tls_context.hpp"
#include "tests/unit/runtime/net/net_support.hpp"
#include "tests/unit/runtime/net/silent_ones.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <optional>
#include <stdexcept>

namespace troupe::net::test {
namespace {

async::task<HttpResponse> answer(HttpRequest request) {
  HttpResponse response;
  if (request.path == "/throw") throw std::runtime_error("the handler broke");
  if (request.path == "/missing") response.status = 404;
  response.body = request.method + " " + request.path + " [" + request.query + "] " +
                  std::string(find_header(request.headers, "CONTENT-type")) + " " + request.body;
  co_return response;
}

core::Result<HttpReply> http_post_json_blocking(const std::string& url,
                                                std::string body,
                                                core::Duration limit) {
  async::IoThreads io(1);
  HttpClient client;
  return io.run(client.post_json(url, std::move(body), limit, {}));
}

class Http : public ::testing::Test {
 protected:
  void open(HttpServerOptions options = {}) {
    auto server = HttpServer::open(io_, std::move(options), answer);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + path;
  }
  // What comes back until the server closes.
  std::string raw(const std::string& bytes) const {
    const Socket socket = Socket::to(server_->port());
    socket.send(bytes);
    return socket.receive();
  }
  // A server of one reply, whatever it is asked; the request's header is read first.
  static std::function<void(Socket)> says(std::string reply) {
    return [reply](Socket socket) {
      std::string got;
      while (got.find("\r\n\r\n") == got.npos) {
        const std::string more = socket.receive(1);
        if (more.empty()) return;
        got += more;
      }
      socket.send(reply);
    };
  }
  static core::Result<HttpReply> post(const LocalServer& server, std::chrono::milliseconds limit) {
    return http_post_json_blocking("http://127.0.0.1:" + std::to_string(server.port) + "/", "{}",
                                   limit);
  }

  async::IoThreads io_{1};
  std::unique_ptr<HttpServer> server_;
};

async::task<void> post_into(std::string url, core::Result<HttpReply>* out) {
  HttpClient client;
  auto reply = co_await client.post_json(url, "[1]", kPatience, {});
  *out = std::move(reply);
}

}  // namespace

TEST_F(Http, CarriesARequestAndItsReply) {
  open();
  auto reply = http_post_json_blocking(url("/a/b?c=d"), "{\"x\":1}", kPatience);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "POST /a/b [c=d] application/json {\"x\":1}");
  EXPECT_EQ(find_header(reply->headers, "content-type"), "application/json");
  core::Result<HttpReply> same = core::fail(core::ErrorCode::kInternal, "");
  io_.run(post_into(url("/c"), &same));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->body, "POST /c [] application/json [1]");
}

TEST_F(Http, ServesLargeBodies) {
  open();
  const std::string body(8u << 20, 'b');
  auto reply = http_post_json_blocking(url(), body, kPatience);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(reply->body.ends_with(body));
}

TEST_F(Http, KeepsAConnectionForSeveralRequests) {
  open();
  const std::string one = "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string last = "GET /2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const std::string both = raw(one + last);  // the second before the first is answered
  EXPECT_NE(both.find("GET /1"), std::string::npos);
  EXPECT_NE(both.find("GET /2"), std::string::npos);
}

TEST_F(Http, AnswersHeadWithoutABody) {
  open();
  const std::string reply = raw("HEAD /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK")) << reply;
  EXPECT_TRUE(reply.ends_with("\r\n\r\n")) << reply;
  EXPECT_NE(reply.find("Content-Length: 12"), std::string::npos) << reply;
}

TEST_F(Http, ContinuesWhenAskedTo) {
  open();
  const std::string reply =
      raw("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n"
          "Content-Length: 2\r\n\r\nhi");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")) << reply;
}

TEST_F(Http, PassesStatusAndFailureOfTheHandlerOn) {
  open();
  EXPECT_EQ(http_post_json_blocking(url("/missing"), "", kPatience)->status, 404);
  auto broken = http_post_json_blocking(url("/throw"), "", kPatience);
  EXPECT_EQ(broken->status, 500);
  EXPECT_NE(broken->body.find("the handler broke"), std::string::npos);
  EXPECT_EQ(http_post_json_blocking(url(), "", kPatience)->status, 200);
}

TEST_F(Http, RefusesForeignHostsAndOrigins) {
  open();
  const auto status = [&](const std::string& headers) {
    return raw("GET / HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n").substr(9, 3);
  };
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(status("Host: 127.0.0.1:" + port + "\r\n"), "200");
  EXPECT_EQ(status("Host: LOCALHOST\r\n"), "200");
  EXPECT_EQ(status("Host: [::1]:80\r\n"), "200");
  EXPECT_EQ(status("Host: evil.example\r\n"), "421");
  EXPECT_EQ(status("Host: 10.0.0.1\r\n"), "421");
  EXPECT_EQ(status("Host: localhost.evil.example\r\n"), "421");
  EXPECT_EQ(status("Host: [::1]evil\r\n"), "400");
  EXPECT_EQ(status("Host: localhost\r\nHost: localhost\r\n"), "400");
  EXPECT_EQ(
      status("Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n"),
      "400");
  EXPECT_EQ(status("Host: localhost\r\nOrigin: http://[::1]evil\r\n"), "403");
  EXPECT_EQ(status(""), "400");
  EXPECT_EQ(status("Host: localhost\r\nOrigin: http://evil.example\r\n"), "403");
  EXPECT_EQ(status("Host: localhost\r\nOrigin: null\r\n"), "403");
  EXPECT_EQ(status("Host: localhost\r\nOrigin: http://localhost:3000\r\n"), "200");
}

TEST_F(Http, HostsBesideLoopbackAreAllowedByName) {
  const HttpHosts inside{true, {}}, outside{false, {}}, named{true, {"node1"}};
  EXPECT_FALSE(host_allowed("node1:80", inside));
  EXPECT_TRUE(host_allowed("Node1:80", named));
  EXPECT_FALSE(host_allowed("10.0.0.1:80", inside));
  EXPECT_TRUE(host_allowed("10.0.0.1:80", outside));
  EXPECT_FALSE(host_allowed("node1", outside));
  for (const char* malformed : {"", "[::1", "[::1]evil", "[::1]:80x", "localhost:8o",
                                "localhost:80:80", "user@localhost", "localhost/x", "[]"}) {
    EXPECT_FALSE(host_allowed(malformed, inside)) << malformed;
    EXPECT_FALSE(host_part(malformed)) << malformed;
  }
  EXPECT_EQ(host_part("[::1]:80"), "::1");
  EXPECT_EQ(host_part("node1"), "node1");
}

TEST_F(Http, ATargetIsAPathOrAUrlOfThisServer) {
  open();
  const auto status = [&](const std::string& line, const std::string& headers) {
    return raw(line + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n").substr(9, 3);
  };
  const std::string host = "Host: localhost\r\n";
  EXPECT_EQ(status("GET http://localhost:1/x?y", host), "200");
  EXPECT_EQ(status("GET HTTP://127.0.0.1", host), "200");
  // The URL's host counts, not the header's (RFC 9112, 3.2.2).
  EXPECT_EQ(status("GET http://localhost/x", "Host: evil.example\r\n"), "200");
  EXPECT_EQ(status("GET http://evil.example/x", host), "421");
  EXPECT_EQ(status("GET http://user@localhost/x", host), "400");
  EXPECT_EQ(status("GET ftp://localhost/x", host), "400");
  EXPECT_EQ(status("GET x", host), "400");
  EXPECT_EQ(status("GET *", host), "400");
  EXPECT_EQ(status("CONNECT localhost:80", host), "501");
  EXPECT_EQ(status("GET http://localhost/x", ""), "400");
  const HttpTarget target = target_of("http://h:1/a/b?c=d?e");
  EXPECT_EQ(target.authority, "h:1");
  EXPECT_EQ(target.path, "/a/b");
  EXPECT_EQ(target.query, "c=d?e");
  EXPECT_EQ(target_of("http://h?c").path, "/");
  EXPECT_EQ(target_of("http://h?c").query, "c");
}

TEST_F(Http, RefusesWhatIsTooLarge) {
  HttpServerOptions options;
  options.body_bytes_max = 1000;
  open(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(raw(head + "Content-Length: 1073741824\r\n\r\n").substr(9, 3), "413");
  const std::string chunks =
      "Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'c') + "\r\n0\r\n\r\n";
  EXPECT_EQ(raw(head + chunks).substr(9, 3), "413");
  EXPECT_EQ(raw(head + "X: " + std::string(20'000, 'x') + "\r\n\r\n").substr(9, 3), "431");
  EXPECT_EQ(raw("nonsense\r\n\r\n").substr(9, 3), "400");
  EXPECT_EQ(http_post_json_blocking(url(), "", kPatience)->status, 200);
}

TEST_F(Http, RefusesWhatAProxyCouldReadOtherwiseAndReadsNothingBehindIt) {
  open();
  const std::string hidden = "GET /hidden HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const auto status = [&](const std::string& lines, const std::string& version = "1.1") {
    const std::string reply =
        raw("POST / HTTP/" + version + "\r\nHost: localhost\r\n" + lines + "\r\n" + hidden);
    EXPECT_EQ(reply.find("/hidden"), reply.npos) << lines << reply;
    return reply.substr(9, 3);
  };
  for (const char* coding :
       {"xchunked", "gzip", "gzip, chunked", "chunked, chunked", "identity", "chunked;q=1", ""}) {
    EXPECT_EQ(status("Transfer-Encoding: " + std::string(coding) + "\r\n"), "501") << coding;
  }
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"), "400");
  EXPECT_EQ(status("Transfer-Encoding: chunked\r\n", "1.0"), "400");
  for (const char* lines : {"X: a\r\n b\r\n", "X: a\r\n\tb: c\r\n", "X:\r\n  Y: 1\r\n",
                            "Transfer-Encoding:\r\n chunked\r\n", "X: a\r\n \r\n"}) {
    EXPECT_EQ(status(lines), "400") << lines;
  }
  const std::string taken =
      raw("POST /t HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
          "Transfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
  EXPECT_TRUE(taken.starts_with("HTTP/1.1 200") && taken.ends_with("hi")) << taken;
}

TEST_F(Http, AFoldedLineIsSeenInHoweverManyPiecesItComes) {
  open();
  const std::string request =
      "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: a\r\n b\r\n\r\n";
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    const Socket socket = Socket::to(server_->port());
    socket.send(request.substr(0, cut));
    socket.send(request.substr(cut));
    EXPECT_TRUE(socket.receive().starts_with("HTTP/1.1 400")) << cut;
  }
}

TEST_F(Http, CutsSlowHeadersAndIdleConnectionsOff) {
  HttpServerOptions options;
  options.header_limit = std::chrono::milliseconds(50);
  options.body_limit = std::chrono::milliseconds(50);
  options.idle_limit = std::chrono::milliseconds(50);
  open(options);
  EXPECT_EQ(raw(""), "");
  EXPECT_EQ(raw("GET / HTTP/1.1\r\nHost: loc"), "");
  EXPECT_EQ(raw("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx"), "");
  EXPECT_NE(raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").find("200 OK"), std::string::npos);
}

TEST_F(Http, HasABoundOfConnections) {
  HttpServerOptions options;
  options.connections_max = 2;
  open(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n";
  const Socket one = Socket::to(server_->port()), two = Socket::to(server_->port());
  for (const Socket* socket : {&one, &two}) {
    ASSERT_TRUE(socket->send(head + "body"));
    EXPECT_EQ(socket->receive(12), "HTTP/1.1 200");
    ASSERT_TRUE(socket->send(head));  // the next request is under way
  }
  EXPECT_EQ(raw(head).substr(9, 3), "503");
}

TEST_F(Http, WhoSaysNothingGivesWayToWhoWaits) {
  HttpServerOptions options;
  options.connections_max = 3;
  open(options);
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n";
  const Socket busy = Socket::to(server_->port()), idle = Socket::to(server_->port());
  for (const Socket* socket : {&busy, &idle}) {
    ASSERT_TRUE(socket->send(head + "body"));
    EXPECT_EQ(socket->receive(12), "HTTP/1.1 200");
  }
  const std::string last =
      "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
  ASSERT_TRUE(busy.send(last));
  const Socket silent = Socket::to(server_->port());
  ASSERT_TRUE(silent.send("POST / HT"));
  const Socket first = Socket::to(server_->port());
  ASSERT_TRUE(first.send(last));
  EXPECT_EQ(silent.receive(), "") << "it never asked for anything";
  const Socket second = Socket::to(server_->port());
  ASSERT_TRUE(second.send(last));
  bool ended = false;
  idle.receive(std::string::npos, &ended);
  EXPECT_TRUE(ended) << "nothing was asked for since";
  for (const Socket* socket : {&busy, &first, &second}) {
    ASSERT_TRUE(socket->send("body"));
    EXPECT_TRUE(socket->receive().ends_with("body"));
  }
}

// Each was silent in the system's queue for as long as it was there: no turn of every two is waited
// for.
TEST_F(Http, WhoSpeaksIsAnsweredThroughAQueueOfSilentOnes) {
  HttpServerOptions options;
  options.connections_max = 2;
  open(std::move(options));
  const SilentOnes crowd(server_->port(), 500);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(raw("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    .starts_with("HTTP/1.1 200"));
}

TEST_F(Http, StopsWithConnectionsOpen) {
  open();
  const Socket idle = Socket::to(server_->port());
  ASSERT_TRUE(idle.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(idle.receive(12), "HTTP/1.1 200");
  server_->stop();
  idle.receive();
  EXPECT_EQ(http_post_json_blocking(url(), "", kPatience).error().code, core::ErrorCode::kPeerLost);
}

TEST_F(Http, TheClientSaysWhatWentWrong) {
  using core::ErrorCode;
  EXPECT_EQ(http_post_json_blocking("127.0.0.1:80", "", kPatience).error().code,
            ErrorCode::kConfig);
  LocalServer garbage(says("SSH-2.0-OpenSSH\r\n\r\n"));
  EXPECT_EQ(post(garbage, kPatience).error().code, ErrorCode::kData);
  LocalServer half(says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"));
  EXPECT_EQ(post(half, kPatience).error().code, ErrorCode::kPeerLost);
  LocalServer huge(says("HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"));
  EXPECT_EQ(post(huge, kPatience).error().code, ErrorCode::kData);
  LocalServer silent([](Socket socket) { socket.receive(); });
  auto late = post(silent, std::chrono::milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kDeadline);
  EXPECT_NE(late.error().message.find("no reply within 50 ms"), std::string::npos);
}

TEST_F(Http, TheClientFollowsNoRedirect) {
  LocalServer other(
      says("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n"
           "Content-Length: 0\r\n\r\n"));
  auto reply = post(other, kPatience);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 307);
}

TEST_F(Http, TheClientTrustsNoUnknownCertificate) {
  GatewayAuth auth;
  auth.token = *make_token();
  auto context = make_gateway_context(auth);  // with a certificate that nobody signed
  ASSERT_TRUE(context);
  std::atomic<bool> reached{false};
  LocalServer server([&](Socket socket) {
    const SslPtr ssl(SSL_new(context->get()));
    SSL_set_fd(ssl.get(), socket.fd());
    SSL_accept(ssl.get());
    char byte;
    reached = SSL_read(ssl.get(), &byte, 1) == 1;
  });
  auto reply = http_post_json_blocking("https://127.0.0.1:" + std::to_string(server.port) + "/", "",
                                       kPatience);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("certificate verify failed"), std::string::npos)
      << reply.error().message;
  EXPECT_FALSE(reached);
}

}  // namespace troupe::net::test
