// The HTTP client's connections over real sockets: kept for the next call, as many as calls run at
// once, and replaced without a failure when the server has closed them.
#include "runtime/net/http_client.hpp"

#include "runtime/async/io_threads.hpp"
#include "runtime/async/scope.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

namespace troupe::net::test {
namespace {

// How a server treats a connection.
struct Manner {
  const char* version = "HTTP/1.1";
  int replies_max = 1 << 30;  // it closes the connection behind so many, without a word
  std::string header{};       // of each reply
  int backlog = 5;            // Python's own server has 5
};

// Answers each request with its body, one thread a connection.
class EchoServer {
 public:
  explicit EchoServer(Manner manner)
      : manner_(std::move(manner)),
        server_([this](Socket socket) { serve(std::move(socket)); }, manner_.backlog) {}

  ~EchoServer() { hang_up(); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port) + "/"; }
  int connections() const { return server_.accepted; }
  // Ends each connection.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_)
      ::shutdown(fd, SHUT_RDWR);
  }

 private:
  void serve(Socket socket) {
    {
      const std::lock_guard lock(mutex_);
      open_.push_back(socket.fd());
    }
    std::string got;
    for (int replies = 0; replies < manner_.replies_max; ++replies) {
      if (!reply(socket, got)) break;
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, socket.fd());
    socket = Socket();
  }
  bool reply(const Socket& socket, std::string& got) const {
    const auto more = [&] {
      char buffer[4096];
      const auto n = ::recv(socket.fd(), buffer, sizeof buffer, 0);
      if (n > 0) got.append(buffer, static_cast<std::size_t>(n));
      return n > 0;
    };
    std::size_t head = 0;
    while ((head = got.find("\r\n\r\n")) == got.npos)
      if (!more()) return false;
    const std::size_t at = got.find("Content-Length: ");
    const std::size_t size = at < head ? std::stoul(got.substr(at + 16)) : 0;
    while (got.size() < head + 4 + size)
      if (!more()) return false;
    const std::string body = got.substr(head + 4, size);
    got.erase(0, head + 4 + size);
    return socket.send(std::string(manner_.version) + " 200 OK\r\n" + manner_.header +
                       "Content-Length: " + std::to_string(size) + "\r\n\r\n" + body);
  }

  const Manner manner_;
  std::mutex mutex_;
  std::vector<int> open_;
  LocalServer server_;
};

struct Outcome {
  int right = 0;
  std::string wrong;
};

async::task<core::Result<void>> caller(
    HttpClient* client, std::string url, int begin, int end, Outcome* outcome) {
  for (int i = begin; i < end; ++i) {
    const std::string body = "[" + std::to_string(i) + "]";
    auto reply = co_await client->post_json(url, body, kPatience, {});
    if (reply && reply->body == body) {
      ++outcome->right;
    } else {
      outcome->wrong = reply ? "body " + reply->body : reply.error().message;
    }
  }
  co_return core::Result<void>();
}

// So many callers at a time, each with its share of the calls.
async::task<void> call_many(
    HttpClient* client, std::string url, int callers, int calls, Outcome* outcome) {
  std::vector<async::task<core::Result<void>>> all;
  for (int i = 0; i < callers; ++i)
    all.push_back(caller(client, url, i * calls, (i + 1) * calls, outcome));
  (void)co_await async::all(std::move(all));
}

class HttpClientTest : public ::testing::Test {
 protected:
  Outcome call(EchoServer& server, int callers, int calls) {
    Outcome outcome;
    io_.run(call_many(&client_, server.url(), callers, calls, &outcome));
    return outcome;
  }
  async::IoThreads io_{1};
  HttpClient client_;
};

}  // namespace

TEST_F(HttpClientTest, OpensAtMostAsManyConnectionsAsCallsRunAtOnce) {
  EchoServer server({});
  const Outcome outcome = call(server, 64, 10);
  EXPECT_EQ(outcome.right, 640) << outcome.wrong;
  EXPECT_LE(server.connections(), 64);
  EXPECT_EQ(client_.connections_opened(), static_cast<std::uint64_t>(server.connections()));
}

TEST_F(HttpClientTest, OneCallerHasOneConnection) {
  EchoServer server({});
  EXPECT_EQ(call(server, 1, 100).right, 100);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientTest, AConnectionThatTheServerClosesIsReplacedWithoutAFailure) {
  Manner closing;
  closing.replies_max = 3;
  EchoServer server(closing);
  const Outcome outcome = call(server, 8, 30);
  EXPECT_EQ(outcome.right, 240) << outcome.wrong;
  EXPECT_GE(server.connections(), 80);
}

TEST_F(HttpClientTest, ConnectionsThatEndWhileNobodyCallsAreReplaced) {
  EchoServer server({});
  ASSERT_EQ(call(server, 4, 4).right, 16);
  server.hang_up();
  const Outcome outcome = call(server, 4, 4);
  EXPECT_EQ(outcome.right, 16) << outcome.wrong;
}

TEST_F(HttpClientTest, AServerThatKeepsNoneGetsOneForEachCall) {
  Manner old;
  old.version = "HTTP/1.0";
  old.replies_max = 1;
  EchoServer server(old);
  const Outcome outcome = call(server, 16, 4);
  EXPECT_EQ(outcome.right, 64) << outcome.wrong;
  EXPECT_EQ(server.connections(), 64);
  Manner polite;
  polite.header = "Connection: close\r\n";
  polite.replies_max = 1;
  EchoServer other(polite);
  EXPECT_EQ(call(other, 4, 4).right, 16);
  EXPECT_EQ(other.connections(), 16);
}

TEST_F(HttpClientTest, ANewConnectionThatBreaksIsAFailure) {
  Manner deaf;
  deaf.replies_max = 0;
  EchoServer server(deaf);
  const Outcome outcome = call(server, 1, 1);
  EXPECT_EQ(outcome.right, 0);
  EXPECT_NE(outcome.wrong.find("cannot read the reply"), std::string::npos) << outcome.wrong;
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace troupe::net::test
