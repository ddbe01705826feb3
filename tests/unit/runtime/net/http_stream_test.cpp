// Replies in pieces, clients that go, and what a server says to those it has no room for.
#include "runtime/async/event.hpp"
#include "runtime/net/http_server.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

#include <future>

namespace troupe::net::test {
namespace {

// What a test can see of a stream from its own thread.
struct Seen {
  std::atomic<int> asked{0};
  std::promise<void> destroyed;
};

class Pieces final : public HttpStream {
 public:
  Pieces(std::vector<std::string> pieces, std::shared_ptr<Seen> seen, bool forever = false)
      : pieces_(std::move(pieces)), seen_(std::move(seen)), forever_(forever) {}
  ~Pieces() override { seen_->destroyed.set_value(); }
  async::task<std::optional<std::string>> next() override {
    ++seen_->asked;
    if (at_ == pieces_.size() && forever_) at_ = 0;
    if (at_ == pieces_.size()) co_return std::nullopt;
    if (pieces_[at_] == "throw") throw std::runtime_error("the stream broke");
    co_return std::optional<std::string>(pieces_[at_++]);
  }

 private:
  const std::vector<std::string> pieces_;
  std::shared_ptr<Seen> seen_;
  const bool forever_;
  std::size_t at_ = 0;
};

class HttpStreams : public ::testing::Test {
 protected:
  void open(HttpServerOptions options, HttpServer::Handler handler) {
    auto server = HttpServer::open(io_, std::move(options), std::move(handler));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void open_pieces(std::vector<std::string> pieces,
                   bool forever = false,
                   HttpServerOptions options = {}) {
    open(std::move(options), [this, pieces, forever](HttpRequest request) {
      return answer(request.path == "/plain" ? nullptr
                                             : std::make_shared<Pieces>(pieces, seen_, forever));
    });
  }
  static async::task<HttpResponse> answer(std::shared_ptr<HttpStream> stream) {
    HttpResponse response;
    response.content_type = "text/event-stream";
    response.body = "plain";
    response.stream = std::move(stream);
    co_return response;
  }
  std::string raw(const std::string& bytes) const {
    const Socket socket = Socket::to(server_->port());
    socket.send(bytes);
    return socket.receive();
  }
  bool destroyed() {
    return seen_->destroyed.get_future().wait_for(kPatience) == std::future_status::ready;
  }

  async::IoThreads io_{1};
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  std::unique_ptr<HttpServer> server_;
};

const std::string kGet = "GET /s HTTP/1.1\r\nHost: localhost\r\n";
const std::string kClose = "Connection: close\r\n\r\n";

std::string body_of(const std::string& reply) {
  return reply.substr(reply.find("\r\n\r\n") + 4);
}

}  // namespace

TEST_F(HttpStreams, SendsAChunkForEachPiece) {
  open_pieces({"hello", "", "data: 1\n\n"});
  const std::string reply = raw(kGet + kClose);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_NE(reply.find("Transfer-Encoding: chunked\r\n"), std::string::npos) << reply;
  EXPECT_NE(reply.find("Content-Type: text/event-stream\r\n"), std::string::npos) << reply;
  EXPECT_EQ(body_of(reply), "5\r\nhello\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n");
  EXPECT_TRUE(destroyed());
}

TEST_F(HttpStreams, AConnectionGoesOnAfterAStream) {
  open_pieces({"one"});
  const std::string reply =
      raw(kGet + "\r\n" + "GET /plain HTTP/1.1\r\nHost: localhost\r\n" + kClose);
  EXPECT_NE(reply.find("3\r\none\r\n0\r\n\r\nHTTP/1.1 200 OK"), std::string::npos) << reply;
  EXPECT_TRUE(reply.ends_with("plain")) << reply;
}

TEST_F(HttpStreams, OlderClientsGetTheBytesAndTheEnd) {
  open_pieces({"one", "two"});
  const std::string reply = raw("GET /s HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(reply.find("chunked"), std::string::npos) << reply;
  EXPECT_EQ(body_of(reply), "onetwo");
}

TEST_F(HttpStreams, AStreamThatBreaksEndsWithoutItsLastChunk) {
  open_pieces({"one", "throw"});
  EXPECT_EQ(body_of(raw(kGet + kClose)), "3\r\none\r\n");
  EXPECT_TRUE(destroyed());
}

TEST_F(HttpStreams, AClientThatReadsNothingHoldsTheStreamBackAndIsCutOff) {
  HttpServerOptions options;
  options.body_limit = std::chrono::milliseconds(100);
  const std::string piece(1u << 20, 'x');
  open_pieces({piece}, true, options);
  const Socket client = Socket::to(server_->port());
  ASSERT_TRUE(client.send(kGet + "\r\n"));
  EXPECT_TRUE(destroyed());
  EXPECT_LT(seen_->asked, 64);  // MiB: what the kernel's buffers took, and no more
}

TEST_F(HttpStreams, AClientThatGoesEndsItsStream) {
  open_pieces({"data"}, true);
  {
    const Socket client = Socket::to(server_->port());
    ASSERT_TRUE(client.send(kGet + "\r\n"));
    EXPECT_EQ(client.receive(15), "HTTP/1.1 200 OK");
  }
  EXPECT_TRUE(destroyed());
}

TEST_F(HttpStreams, TheHandlerHearsThatItsClientHasGone) {
  struct Wait {
    static async::task<HttpResponse> until_gone(HttpRequest request, std::promise<void>* told) {
      auto event = std::make_shared<async::Event>();
      request.client->on_gone([event] { event->fire(); });
      if (request.path == "/stay") co_return HttpResponse{};
      co_await async::Event::wait(event);
      told->set_value();
      co_return HttpResponse{};
    }
  };
  std::promise<void> told;
  HttpServerOptions options;
  options.watch_clients = true;
  open(options,
       [&told](HttpRequest request) { return Wait::until_gone(std::move(request), &told); });
  // One that stays is answered, twice on one connection.
  const std::string stay = "GET /stay HTTP/1.1\r\nHost: localhost\r\n";
  const Socket patient = Socket::to(server_->port());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(patient.send(stay + "\r\n"));
    EXPECT_TRUE(patient.receive(15).starts_with("HTTP/1.1 200 OK"));
    std::string rest;
    while (!rest.ends_with("\r\n\r\n")) {
      const std::string more = patient.receive(1);
      ASSERT_FALSE(more.empty());
      rest += more;
    }
  }
  {
    const Socket client = Socket::to(server_->port());
    ASSERT_TRUE(client.send(kGet + "\r\n"));
  }
  EXPECT_EQ(told.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(HttpStreams, StopsWithStreamsOpen) {
  open_pieces({std::string(1u << 20, 'x')}, true);
  const Socket client = Socket::to(server_->port());
  ASSERT_TRUE(client.send(kGet + "\r\n"));
  EXPECT_EQ(client.receive(15), "HTTP/1.1 200 OK");
  server_->stop();
  EXPECT_TRUE(destroyed());
}

TEST_F(HttpStreams, OneConnectionTooManyHearsWhyAndWhenToComeBack) {
  HttpServerOptions options;
  options.connections_max = 1;
  options.complaint = [](int status, const std::string& why, const std::string& path) {
    HttpResponse response;
    response.status = status;
    response.body = path + " " + why;
    return response;
  };
  open_pieces({}, false, options);
  const Socket first = Socket::to(server_->port());
  ASSERT_TRUE(first.send("GET /plain HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(first.receive(12), "HTTP/1.1 200");
  ASSERT_TRUE(first.send("POST /plain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"));
  std::vector<Socket> others;
  for (int i = 0; i < 400; ++i) {
    others.push_back(Socket::to(server_->port()));
    ASSERT_TRUE(others.back().send(kGet + "\r\n"));
    others.back().end();
  }
  for (const Socket& one : others) {
    const std::string reply = one.receive();
    ASSERT_TRUE(reply.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << reply;
    ASSERT_NE(reply.find("Retry-After: 1\r\n"), std::string::npos) << reply;
    ASSERT_EQ(body_of(reply), "/s there are too many connections; try again later");
  }
}

TEST_F(HttpStreams, ARefusedBodyIsNotReadAndItsSenderHearsWhy) {
  HttpServerOptions options;
  options.body_bytes_max = 1000;
  open_pieces({}, false, options);
  const Socket client = Socket::to(server_->port());
  ASSERT_TRUE(
      client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"));
  ASSERT_TRUE(client.send(std::string(200'000, 'b')));  // what was under way already
  bool ended = false;
  const std::string reply = client.receive(std::string::npos, &ended);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 413 ")) << reply;
  EXPECT_TRUE(ended) << "the connection was reset";
}

}  // namespace troupe::net::test
