// A WebSocket server for tests: each connection runs the same script, on a thread of its own. What
// is no WebSocket handshake gets one fixed HTTP answer.
#pragma once

#include "runtime/core/owned_fd.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace troupe::net {

class WebSocketPeer {
 public:
  using Tcp = boost::asio::ip::tcp;

  // One connection, blocking. All calls throw when it is over.
  class Session {
   public:
    explicit Session(Tcp::socket socket) : socket_(std::move(socket)) {}
    std::string read() {
      boost::beast::flat_buffer buffer;
      socket_.read(buffer);
      return boost::beast::buffers_to_string(buffer.data());
    }
    void send(const std::string& text) { socket_.write(boost::asio::buffer(text)); }
    void send_binary(const std::string& bytes) {
      socket_.binary(true);
      send(bytes);
    }
    void close(const std::string& reason) {
      socket_.close({boost::beast::websocket::close_code::try_again_later, reason});
    }
    // Ends the connection without a goodbye.
    void drop() { socket_.next_layer().shutdown(Tcp::socket::shutdown_both); }
    // Until the other end closes it.
    void wait_for_end() {
      boost::system::error_code failed;
      for (boost::beast::flat_buffer buffer; !failed;)
        socket_.read(buffer, failed);
    }
    boost::beast::websocket::stream<Tcp::socket>& socket() { return socket_; }

   private:
    boost::beast::websocket::stream<Tcp::socket> socket_;
  };
  // `number`: of the connection, from 0.
  using Script = std::function<void(Session& session, int number)>;

  explicit WebSocketPeer(Script script, std::string answer = "", unsigned status = 200)
      : script_(std::move(script)),
        answer_(std::move(answer)),
        status_(status),
        acceptor_(context_, Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    port_ = acceptor_.local_endpoint().port();
    accepting_ = std::thread([this] { accept(); });
  }
  ~WebSocketPeer() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends the accept that waits
    accepting_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const core::OwnedFd& socket : sockets_)
        ::shutdown(socket.get(), SHUT_RDWR);
    }
    for (std::thread& thread : threads_)
      thread.join();
  }
  std::string url(const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(port_);
  }
  int connections() const { return connections_; }

 private:
  void accept() {
    for (;;) {
      boost::system::error_code failed;
      Tcp::socket socket(context_);
      acceptor_.accept(socket, failed);
      if (failed) return;
      const std::lock_guard lock(mutex_);
      sockets_.emplace_back(::dup(socket.native_handle()));
      const int same = sockets_.back().get();
      auto shared = std::make_shared<Tcp::socket>(std::move(socket));
      threads_.emplace_back([this, shared, same] {
        serve(std::move(*shared));
        ::shutdown(same, SHUT_RDWR);
      });
    }
  }
  void serve(Tcp::socket socket) {
    try {
      namespace http = boost::beast::http;
      boost::beast::flat_buffer buffer;
      http::request<http::string_body> request;
      http::read(socket, buffer, request);
      if (boost::beast::websocket::is_upgrade(request) && status_ == 200) {
        Session session(std::move(socket));
        session.socket().accept(request);
        script_(session, connections_++);
        return;
      }
      http::response<http::string_body> response(http::int_to_status(status_), 11);
      response.body() = answer_;
      response.set(http::field::connection, "close");
      response.prepare_payload();
      http::write(socket, response);
    } catch (const boost::system::system_error&) {
      // The client has ended the connection, or the test.
    }
  }

  const Script script_;
  const std::string answer_;
  const unsigned status_;
  boost::asio::io_context context_;
  Tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::list<core::OwnedFd> sockets_;  // of all connections, for the end
  std::list<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace troupe::net
