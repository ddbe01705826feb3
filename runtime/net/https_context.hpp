// The certificate and the key with which the HTTP server speaks TLS (1.2 or 1.3). Read once, when
// the server starts; immutable then, any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <memory>

namespace boost::asio::ssl {
class context;
}

namespace troupe::net {

struct HttpsFiles {
  std::filesystem::path certificate;  // PEM: the server's own first, then those that signed it
  std::filesystem::path key;          // PEM, not encrypted, unreadable for others
};

class HttpsContext {
 public:
  // Errors (kConfig) name the file: it cannot be read or is not PEM, the key is not the
  // certificate's, is encrypted or open to everybody, the certificate has ended.
  static core::Result<std::shared_ptr<HttpsContext>> load(const HttpsFiles& files);
  ~HttpsContext();

  boost::asio::ssl::context& native() noexcept { return *context_; }

 private:
  explicit HttpsContext(std::unique_ptr<boost::asio::ssl::context> context);
  std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace troupe::net
