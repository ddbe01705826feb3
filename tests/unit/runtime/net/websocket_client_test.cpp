// The WebSocket client against a server that behaves, and servers that do not.
#include "runtime/net/websocket_client.hpp"

#include "runtime/async/io_threads.hpp"
#include "tests/unit/runtime/net/websocket_peer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace troupe::net {
namespace {

using std::chrono_literals::operator""ms;
using Text = core::Result<std::string>;

class WebSocketClientTest : public testing::Test {
 protected:
  ~WebSocketClientTest() override {
    io_.run(drop(&client_));
    io_.join();
  }
  core::Result<void> connect(const std::string& url,
                             std::size_t most = 1u << 20,
                             core::Duration time = std::chrono::minutes(1)) {
    WebSocketClient::Options options;
    options.message_bytes_max = most;
    options.headers = {{"X-Asked", "yes"}};
    return io_.run(connect_one(url, options, time, &client_));
  }
  Text ask(const std::string& text, core::Duration time = std::chrono::minutes(1)) {
    return io_.run(ask_one(client_.get(), text, time));
  }
  static async::Deadline after(core::Duration time) {
    return async::Deadline::after(core::SteadyClock(), time);
  }
  static async::task<core::Result<void>> connect_one(std::string url,
                                                     WebSocketClient::Options options,
                                                     core::Duration time,
                                                     std::unique_ptr<WebSocketClient>* out) {
    auto client = co_await WebSocketClient::connect(url, std::move(options), after(time));
    if (!client) co_return client.failure();
    *out = std::move(*client);
    co_return core::Result<void>();
  }
  static async::task<Text> ask_one(WebSocketClient* client, std::string text, core::Duration time) {
    TROUPE_CO_TRY(co_await client->send(std::move(text), after(time)));
    auto answer = co_await client->receive(after(time));
    co_return answer;
  }
  static async::task<void> close_one(WebSocketClient* client) {
    co_await client->close(after(std::chrono::minutes(1)));
  }
  static async::task<void> drop(std::unique_ptr<WebSocketClient>* client) {
    client->reset();
    co_return;
  }
  void expect(const Text& text, core::ErrorCode code, const std::string& part) {
    ASSERT_FALSE(text) << *text;
    EXPECT_EQ(text.error().code, code) << text.error().message;
    EXPECT_NE(text.error().message.find(part), std::string::npos) << text.error().message;
  }

  async::IoThreads io_{1};
  std::unique_ptr<WebSocketClient> client_;
};

}  // namespace

TEST_F(WebSocketClientTest, TextsGoBothWays) {
  WebSocketPeer peer([](WebSocketPeer::Session& session, int) {
    for (;;) {
      session.socket().ping({});  // is answered beside
      session.send("so " + session.read());
    }
  });
  ASSERT_TRUE(connect(peer.url("ws") + "/ws?a=b"));
  EXPECT_EQ(*ask("it is"), "so it is");
  const std::string text(200000, 'x');
  EXPECT_EQ(*ask(text), "so " + text);
  io_.run(close_one(client_.get()));
  expect(ask("more"), core::ErrorCode::kPeerLost, "127.0.0.1");
}

TEST_F(WebSocketClientTest, AMessageThatIsTooLongOrNoTextEndsTheConnection) {
  WebSocketPeer peer([](WebSocketPeer::Session& session, int number) {
    session.read();
    if (number == 0) {
      session.send(std::string(10'000'000, 'x'));
    } else {
      session.send_binary("bytes");
    }
    session.wait_for_end();
  });
  ASSERT_TRUE(connect(peer.url(), 1000));
  expect(ask("go"), core::ErrorCode::kData, "a message has more than 1000 bytes");
  ASSERT_TRUE(connect(peer.url(), 1000));
  expect(ask("go"), core::ErrorCode::kData, "a message is not text");
}

TEST_F(WebSocketClientTest, AServerThatHangsDropsOrClosesIsNamed) {
  WebSocketPeer peer([](WebSocketPeer::Session& session, int number) {
    session.read();
    if (number == 0) session.wait_for_end();
    if (number == 1) session.drop();
    if (number == 2) session.close("no room");
  });
  ASSERT_TRUE(connect(peer.url()));
  expect(ask("go", 100ms), core::ErrorCode::kDeadline, "no reply within");
  ASSERT_TRUE(connect(peer.url()));
  expect(ask("go"), core::ErrorCode::kPeerLost, "cannot read");
  ASSERT_TRUE(connect(peer.url()));
  expect(ask("go"), core::ErrorCode::kPeerLost, "closed the connection, code 1013 (no room)");
}

TEST_F(WebSocketClientTest, WhatIsNoWebSocketServerIsRefused) {
  const WebSocketPeer peer(nullptr, "nothing here", 404);
  const auto refused = connect(peer.url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kData);
  EXPECT_NE(refused.error().message.find("status 404"), std::string::npos);
  const auto nobody = connect("ws://127.0.0.1:1/ws");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, core::ErrorCode::kPeerLost);
  const auto url = connect("ftp://127.0.0.1:1/ws");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().code, core::ErrorCode::kConfig);
}

TEST_F(WebSocketClientTest, AConnectionCanBeReplaced) {
  WebSocketPeer peer([](WebSocketPeer::Session& session, int number) {
    session.send(std::to_string(number) + session.read());
    session.wait_for_end();
  });
  ASSERT_TRUE(connect(peer.url()));
  EXPECT_EQ(*ask("a"), "0a");
  ASSERT_TRUE(connect(peer.url()));
  EXPECT_EQ(*ask("b"), "1b");
}

}  // namespace troupe::net
