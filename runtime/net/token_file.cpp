#include "runtime/net/token_file.hpp"

#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/openssl.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::net {
namespace {

using core::ErrorCode;

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string system_reason() {
  return std::strerror(errno);
}

}  // namespace

core::Result<std::string> make_token() {
  unsigned char bytes[kToken_bytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) {
    return openssl_failure(ErrorCode::kResources, "no random bytes for a join token");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4];
    token += kDigits[byte & 15];
  }
  return token;
}

core::Result<std::string> create_token_file(const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(token, make_token());
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (file.fd < 0) {
    const auto code = errno == EEXIST ? ErrorCode::kConfig : ErrorCode::kResources;
    return core::fail(code,
                      "cannot create the token file " + path.string() + ": " + system_reason());
  }
  const std::string line = token + "\n";
  const bool written =
      ::fchmod(file.fd, 0600) == 0 &&
      ::write(file.fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fsync(file.fd) == 0;
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
  // Non-blocking, so that a FIFO of that name cannot hold the program up.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return core::fail(ErrorCode::kConfig, where + ": " + system_reason());
  struct stat status = {};
  if (::fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return core::fail(ErrorCode::kConfig, where + " is not a regular file");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return core::fail(ErrorCode::kConfig,
                      where + " can be read by others than its owner; chmod 600 " + path.string());
  }
  char buffer[2 * kToken_bytes + 3];
  const ssize_t size = ::read(file.fd, buffer, sizeof buffer);
  std::string token(buffer, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r'))
    token.pop_back();
  GatewayAuth auth;
  auth.token = token;
  if (token.empty() || !check_auth(auth)) {
    return core::fail(ErrorCode::kConfig,
                      where + " does not hold a join token (64 lower-case hexadecimal digits)");
  }
  return token;
}

}  // namespace troupe::net
