#include "runtime/net/gateway_auth.hpp"

#include "runtime/net/openssl.hpp"
#include "runtime/net/socket.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::net {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::string system_reason() {
  return std::strerror(errno);
}

}  // namespace

core::Result<void> check_auth(const GatewayAuth& auth) {
  const bool files = !auth.ca.empty() || !auth.certificate.empty() || !auth.key.empty();
  if (auth.by_token() && files) {
    return core::fail(ErrorCode::kConfig, "a join token and certificates were both given",
                      "use one of the two");
  }
  if (auth.by_token()) {
    const bool hex = auth.token.find_first_not_of(kHexDigits) == std::string::npos;
    if (hex && auth.token.size() == 2 * kToken_bytes) return {};
    return core::fail(ErrorCode::kConfig, "a join token is 64 lower-case hexadecimal digits");
  }
  if (!files) {
    return core::fail(
        ErrorCode::kConfig, "connections between hosts need a proof",
        "give a join token file or the CA, certificate and key that `troupe ca init` makes");
  }
  for (const auto& [what, path] :
       {std::pair{"CA", &auth.ca}, {"certificate", &auth.certificate}, {"key", &auth.key}}) {
    if (path->empty()) {
      return core::fail(ErrorCode::kConfig, std::string("the file of the ") + what + " is missing",
                        "CA, certificate and key go together");
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(*path, error)) {
      return core::fail(ErrorCode::kConfig,
                        std::string("there is no ") + what + " file " + path->string());
    }
  }
  return {};
}

core::Result<std::string> make_token() {
  unsigned char bytes[kToken_bytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1)
    return openssl_failure(ErrorCode::kResources, "no random bytes for a join token");
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kHexDigits[byte >> 4];
    token += kHexDigits[byte & 15];
  }
  return token;
}

core::Result<std::string> create_token_file(const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(token, make_token());
  const OwnedFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    const auto code = errno == EEXIST ? ErrorCode::kConfig : ErrorCode::kResources;
    return core::fail(code,
                      "cannot create the token file " + path.string() + ": " + system_reason());
  }
  const std::string line = token + "\n";
  const bool written =
      ::fchmod(file.get(), 0600) == 0 &&
      ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fsync(file.get()) == 0;
  if (!written) {
    const std::string reason = system_reason();
    ::unlink(path.c_str());
    return core::fail(ErrorCode::kResources,
                      "cannot write the token file " + path.string() + ": " + reason);
  }
  return token;
}

core::Result<std::string> read_token_file(const std::filesystem::path& path) {
  const std::string where = "token file " + path.string();
  // Non-blocking, so that opening a FIFO of that name does not block.
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return core::fail(ErrorCode::kConfig, where + ": " + system_reason());
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return core::fail(ErrorCode::kConfig, where + " is not a regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return core::fail(ErrorCode::kConfig, where + " can be read by users other than its owner",
                      "chmod 600 " + path.string());
  }
  char buffer[2 * kToken_bytes + 3];
  const ssize_t size = ::read(file.get(), buffer, sizeof buffer);
  std::string token(buffer, size > 0 ? static_cast<std::size_t>(size) : 0);
  token.erase(token.find_last_not_of("\r\n") + 1);
  GatewayAuth auth;
  auth.token = token;
  if (token.empty() || !check_auth(auth)) {
    return core::fail(ErrorCode::kConfig,
                      where + " does not hold a join token (64 lower-case hexadecimal digits)");
  }
  return token;
}

}  // namespace troupe::net
