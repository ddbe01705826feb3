#include "runtime/net/run_ca.hpp"

#include "runtime/net/certificate.hpp"

#include <fcntl.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::net {
namespace {

using core::ErrorCode;

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
      return core::fail(ErrorCode::kConfig, path.string() +
                                                " exists and is not overwritten; choose another "
                                                "folder with --out");
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
  std::string name;
  std::string text;
  unsigned mode;
};

core::Result<std::vector<PemFile>> make_files(const RunCaOptions& options) {
  const long valid_s = 86400L * options.days;
  TROUPE_TRY_ASSIGN(ca_key, make_key());
  TROUPE_TRY_ASSIGN(node_key, make_key());
  CertificateSpec spec;
  spec.common_name = "run CA";
  spec.valid_to_s = valid_s;
  spec.authority = true;
  TROUPE_TRY_ASSIGN(ca, make_certificate(spec, ca_key.get(), nullptr, nullptr));
  spec.common_name = "node";
  spec.authority = false;
  spec.hosts = options.hosts;
  TROUPE_TRY_ASSIGN(node, make_certificate(spec, node_key.get(), ca.get(), ca_key.get()));
  TROUPE_TRY_ASSIGN(ca_text, pem_of(ca.get(), nullptr));
  TROUPE_TRY_ASSIGN(ca_key_text, pem_of(nullptr, ca_key.get()));
  TROUPE_TRY_ASSIGN(node_text, pem_of(node.get(), nullptr));
  TROUPE_TRY_ASSIGN(node_key_text, pem_of(nullptr, node_key.get()));
  std::vector<PemFile> files;
  files.push_back({"ca.crt", std::move(ca_text), 0644});
  files.push_back({"ca.key", std::move(ca_key_text), 0600});
  files.push_back({"node.crt", std::move(node_text), 0644});
  files.push_back({"node.key", std::move(node_key_text), 0600});
  return files;
}

}  // namespace

core::Result<void> make_run_ca(const RunCaOptions& options) {
  TROUPE_TRY_ASSIGN(files, make_files(options));
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return core::fail(ErrorCode::kResources,
                      "cannot make the folder " + options.folder.string() + ": " + error.message());
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto written = write_new(options.folder / files[i].name, files[i].text, files[i].mode);
    if (written) continue;
    for (std::size_t j = 0; j < i; ++j)
      std::filesystem::remove(options.folder / files[j].name, error);
    return written;
  }
  return {};
}

}  // namespace troupe::net
