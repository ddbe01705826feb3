#include "runtime/store/sha256.hpp"

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace troupe::store {
Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  // Every OpenSSL has it, but looks it up and copies it, which takes memory.
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
    throw std::system_error(std::make_error_code(std::errc::not_enough_memory),
                            "OpenSSL gives no SHA-256");
  }
}

void Sha256::add(const void* data, std::size_t bytes) {
  TROUPE_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1, "SHA-256 failed");
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  TROUPE_CHECK(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1, "SHA-256 failed");
  return core::hex({digest, size});
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

std::string sha256_text(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

core::Result<FileDigest> sha256_file(const std::filesystem::path& file,
                                     const std::atomic<bool>* stop) {
  const core::OwnedFd input(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!input) return io_failure("open", file, errno);
  Sha256 digest;
  FileDigest out;
  std::vector<char> block(1u << 20);
  for (;;) {
    if (stop != nullptr && stop->load())
      return core::fail(core::ErrorCode::kInterrupted, "hashing of " + file.string() + " stopped");
    const ssize_t count = ::read(input.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("read", file, errno);
    if (count == 0) break;
    digest.add(block.data(), static_cast<std::size_t>(count));
    out.bytes += static_cast<std::uint64_t>(count);
  }
  out.sha256 = digest.hex();
  return out;
}

}  // namespace troupe::store
