#include "runtime/net/https_context.hpp"

#include "runtime/net/openssl.hpp"

#include <boost/asio/ssl/context.hpp>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace troupe::net {
namespace {

core::Result<void> check_file(const std::filesystem::path& file, const char* what, bool secret) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) {
    return fail(ErrorCode::kConfig, std::string("cannot read the ") + what + " " + file.string() +
                                        ": " + std::strerror(errno));
  }
  if (secret && (status.st_mode & S_IRWXO) != 0) {
    return fail(ErrorCode::kConfig, "the key " + file.string() + " can be read by everybody",
                "chmod 600 " + file.string());
  }
  return {};
}

int no_password(char*, int, int, void*) {
  return -1;
}

}  // namespace

core::Result<std::shared_ptr<HttpsContext>> HttpsContext::load(const HttpsFiles& files) {
  TROUPE_TRY(check_file(files.certificate, "certificate", false));
  TROUPE_TRY(check_file(files.key, "key", true));
  SslContextPtr made(SSL_CTX_new(TLS_server_method()));
  if (!made) return openssl_failure(ErrorCode::kResources, "cannot set up TLS");
  SSL_CTX* const context = made.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(context, &no_password);  // the default asks at the terminal
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return openssl_failure(ErrorCode::kConfig,
                           "no certificate in PEM in " + files.certificate.string());
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool other = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                       ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
    const std::string key = files.key.string();
    return openssl_failure(
        ErrorCode::kConfig,
        other ? "the key " + key + " is not that of the certificate " + files.certificate.string()
              : "no key in PEM, or an encrypted one, in " + key);
  }
  if (X509_cmp_current_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context))) < 0) {
    return fail(ErrorCode::kConfig,
                "the certificate " + files.certificate.string() + " has expired",
                "clients would refuse it");
  }
  return std::shared_ptr<HttpsContext>(
      new HttpsContext(std::make_unique<boost::asio::ssl::context>(made.release())));
}

HttpsContext::HttpsContext(std::unique_ptr<boost::asio::ssl::context> context)
    : context_(std::move(context)) {}

HttpsContext::~HttpsContext() = default;

}  // namespace troupe::net
