// `troupe serve` on a tiny model whose context is long enough that a response outlasts its client,
// and a plain HTTP client for it. Used on a test's main thread.
#pragma once

#include "processes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::test {

inline model::ModelSpec long_tiny_spec() {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 1;
  spec.hidden = 32;
  spec.heads = 2;
  spec.kv_heads = 1;
  spec.head_dim = 16;
  spec.ffn = 64;
  spec.vocab = 257;
  spec.context = 65536;
  spec.eos = {256};
  return spec;
}

// `make_tiny_model` with a tokenizer over bytes.
inline std::string make_model(const ScratchFolder& folder,
                              const model::ModelSpec& spec,
                              const std::function<void(model::ParamStore&)>& change = nullptr) {
  std::string path = make_tiny_model(folder, spec, change);
  write_byte_tokenizer(path);
  return path;
}

inline std::string make_long_tiny_model(const ScratchFolder& folder) {
  return make_model(folder, long_tiny_spec());
}

struct HttpAnswer {
  int status = 0;
  std::string head, body;
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

// One connection of a client that says exactly what it is told to.
class Caller {
 public:
  explicit Caller(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    const timeval limit = {60, 0};  // a test can fail, not hang
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  Caller(Caller&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~Caller() { hang_up(); }
  void hang_up() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  bool connected() const { return connected_; }
  bool send(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const auto n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  // Until `part` has come, the other side's end or the limit.
  std::string read_until(const std::string& part) {
    while (got_.find(part) == got_.npos && more()) {
    }
    return got_;
  }
  HttpAnswer answer() {
    while (more()) {
    }
    HttpAnswer answer;
    const auto cut = got_.find("\r\n\r\n");
    if (got_.size() < 12 || cut == got_.npos) return answer;
    answer.status = std::atoi(got_.c_str() + 9);
    answer.head = got_.substr(0, cut);
    answer.body = got_.substr(cut + 4);
    if (answer.head.find("chunked") != answer.head.npos) answer.body = joined(answer.body);
    return answer;
  }

 private:
  bool more() {
    char buffer[65536];
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    got_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  static std::string joined(const std::string& chunks) {
    std::string out;
    for (std::size_t at = 0; at < chunks.size();) {
      const std::size_t size = std::strtoul(chunks.c_str() + at, nullptr, 16);
      const auto line = chunks.find("\r\n", at);
      if (size == 0 || line == chunks.npos) break;
      out += chunks.substr(line + 2, size);
      at = line + 2 + size + 2;
    }
    return out;
  }

  int fd_;
  bool connected_ = false;
  std::string got_;
};

inline std::string http_request(const std::string& method,
                                const std::string& path,
                                const std::string& body = "",
                                const std::string& headers = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// The JSON objects of a stream of events; the last must be [DONE].
inline std::vector<nlohmann::json> events(const std::string& body) {
  std::vector<nlohmann::json> out;
  bool done = false;
  for (std::size_t at = 0; at < body.size();) {
    const auto end = body.find("\n\n", at);
    if (end == body.npos || body.compare(at, 6, "data: ") != 0) {
      ADD_FAILURE() << "no event: " << body.substr(at, 200);
      break;
    }
    const std::string data = body.substr(at + 6, end - at - 6);
    EXPECT_FALSE(done) << "an event after the end";
    done = data == "[DONE]";
    if (!done) out.push_back(nlohmann::json::parse(data, nullptr, false));
    at = end + 2;
  }
  EXPECT_TRUE(done) << body;
  return out;
}

class Served {
 public:
  using MakeModel = std::function<std::string(const ScratchFolder&)>;  // gives the model's path

  explicit Served(std::vector<std::string> more = {},
                  const MakeModel& make = &make_long_tiny_model) {
    std::vector<std::string> words = {troupe_program(),      "serve", "--model", make(folder_),
                                      "--served-model-name", "tiny",  "--port",  "0",
                                      "--threads",           "1"};
    words.insert(words.end(), more.begin(), more.end());
    program_ = Background(words, folder_ / "log.txt");
    within(60, [&] { return program_.says("/v1\n") || !program_.running(); });
    const std::string text = program_.text();
    const auto at = text.find("127.0.0.1:");
    if (at != text.npos) port = static_cast<std::uint16_t>(std::atoi(text.c_str() + at + 10));
    EXPECT_GT(port, 0) << text;
  }
  HttpAnswer call(const std::string& method,
                  const std::string& path,
                  const std::string& body = "",
                  const std::string& headers = "") const {
    Caller caller(port);
    caller.send(http_request(method, path, body, headers));
    return caller.answer();
  }
  HttpAnswer post(const std::string& path, const nlohmann::json& body) const {
    return call("POST", path, body.dump());
  }
  // The value of a line of /metrics that begins with `name`.
  double metric(const std::string& name) const {
    std::istringstream page(call("GET", "/metrics").body);
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with(name)) return std::stod(line.substr(line.rfind(' ')));
    }
    ADD_FAILURE() << "no metric " << name;
    return -1;
  }
  Background& program() { return program_; }

  std::uint16_t port = 0;

 private:
  ScratchFolder folder_;
  Background program_;
};

}  // namespace troupe::test
