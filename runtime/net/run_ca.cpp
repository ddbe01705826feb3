#include "runtime/net/run_ca.hpp"

#include "runtime/net/certificate.hpp"

#include <fcntl.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::net {
namespace {

core::Result<std::string> pem_of(X509* certificate, EVP_PKEY* key) {
  BioPtr memory(BIO_new(BIO_s_mem()));
  const bool written =
      memory &&
      (certificate != nullptr ? PEM_write_bio_X509(memory.get(), certificate) == 1
                              : PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0,
                                                         nullptr, nullptr) == 1);
  if (!written) return openssl_failure(ErrorCode::kInternal, "cannot write PEM");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

core::Result<void> write_new(const std::filesystem::path& path,
                             const std::string& text,
                             unsigned mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) {
    const std::string reason = std::strerror(errno);
    if (errno == EEXIST) {
      return core::fail(ErrorCode::kConfig, path.string() + " exists and is not overwritten",
                        "choose another folder with --out");
    }
    return core::fail(ErrorCode::kResources, "cannot create " + path.string() + ": " + reason);
  }
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const std::string reason = std::strerror(errno);
  ::close(fd);
  if (written) return {};
  ::unlink(path.c_str());
  return core::fail(ErrorCode::kResources, "cannot write " + path.string() + ": " + reason);
}

struct PemFile {
  const char* name;
  X509* certificate;  // null for a key
  EVP_PKEY* key;      // null for a certificate
};

// Writes a PEM file; a key gets mode 0600.
core::Result<void> write_pem(const std::filesystem::path& folder, const PemFile& file) {
  TROUPE_TRY_ASSIGN(text, pem_of(file.certificate, file.key));
  return write_new(folder / file.name, text, file.key != nullptr ? 0600 : 0644);
}

}  // namespace

core::Result<void> make_run_ca(const RunCaOptions& options) {
  TROUPE_TRY_ASSIGN(ca_key, make_key());
  TROUPE_TRY_ASSIGN(node_key, make_key());
  CertificateSpec spec;
  spec.common_name = "run CA";
  spec.valid_to_s = 86400L * options.days;
  spec.authority = true;
  TROUPE_TRY_ASSIGN(ca, make_certificate(spec, ca_key.get(), nullptr, nullptr));
  spec.common_name = "node";
  spec.authority = false;
  spec.hosts = options.hosts;
  TROUPE_TRY_ASSIGN(node, make_certificate(spec, node_key.get(), ca.get(), ca_key.get()));
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return core::fail(ErrorCode::kResources,
                      "cannot make the folder " + options.folder.string() + ": " + error.message());
  }
  const PemFile files[] = {{"ca.crt", ca.get(), nullptr},
                           {"ca.key", nullptr, ca_key.get()},
                           {"node.crt", node.get(), nullptr},
                           {"node.key", nullptr, node_key.get()}};
  for (const PemFile* file = files; file != std::end(files); ++file) {
    const auto written = write_pem(options.folder, *file);
    if (written) continue;
    for (const PemFile* before = files; before != file; ++before)
      std::filesystem::remove(options.folder / before->name, error);
    return written;
  }
  return {};
}

}  // namespace troupe::net
