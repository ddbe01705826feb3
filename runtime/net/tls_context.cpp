#include "runtime/net/tls_context.hpp"

#include "runtime/net/certificate.hpp"

#include <openssl/x509v3.h>
#include <sys/stat.h>

namespace troupe::net {
namespace {

core::Result<SslContextPtr> bare_context(const SSL_METHOD* method) {
  SslContextPtr made(SSL_CTX_new(method));
  if (!made) return openssl_failure(ErrorCode::kResources, "cannot set up TLS");
  SSL_CTX* context = made.get();
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context,
                                            "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                            "TLS_CHACHA20_POLY1305_SHA256") == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!set) return openssl_failure(ErrorCode::kResources, "cannot set TLS 1.3 up");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, 64 * 1024);
  SSL_CTX_set_max_cert_list(context, 16 * 1024);
  return {std::move(made)};
}

core::Result<void> use_throw_away_certificate(SSL_CTX* context) {
  TROUPE_TRY_ASSIGN(key, make_key());
  CertificateSpec spec;
  spec.common_name = "gateway";
  spec.valid_to_s = 86400L * 365;
  TROUPE_TRY_ASSIGN(certificate, make_certificate(spec, key.get(), nullptr, nullptr));
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return openssl_failure(ErrorCode::kInternal, "cannot use the gateway's certificate");
  }
  return {};
}

// Checks this process's own certificate against the CA, as every peer will.
core::Result<void> verify_own(SSL_CTX* context, const GatewayAuth& auth) {
  std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context),
                                    SSL_CTX_get0_certificate(context), nullptr) != 1) {
    return openssl_failure(ErrorCode::kResources, "cannot check a certificate");
  }
  if (X509_verify_cert(check.get()) == 1) return {};
  const std::string reason = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
  ERR_clear_error();
  return core::fail(ErrorCode::kConfig,
                    "the certificate " + auth.certificate.string() + " is not valid under the CA " +
                        auth.ca.string() + ": " + reason,
                    "`troupe ca init` makes a matching set");
}

core::Result<void> use_files(SSL_CTX* context, const GatewayAuth& auth) {
  struct stat status = {};
  if (::stat(auth.key.c_str(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return core::fail(ErrorCode::kConfig,
                      "the key " + auth.key.string() + " can be read by users other than its owner",
                      "chmod 600 " + auth.key.string());
  }
  if (SSL_CTX_load_verify_file(context, auth.ca.c_str()) != 1)
    return openssl_failure(ErrorCode::kConfig, "cannot read the CA " + auth.ca.string());
  if (SSL_CTX_use_certificate_chain_file(context, auth.certificate.c_str()) != 1) {
    return openssl_failure(ErrorCode::kConfig,
                           "cannot read the certificate " + auth.certificate.string());
  }
  if (SSL_CTX_use_PrivateKey_file(context, auth.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return openssl_failure(ErrorCode::kConfig, "cannot use the key " + auth.key.string());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, 2);
  return verify_own(context, auth);
}

// A context that in CA mode has this process's certificate and checks the peer's. In token mode it
// checks no certificate; the greeting checks the token (gateway_protocol.hpp).
core::Result<SslContextPtr> make_context(const GatewayAuth& auth, const SSL_METHOD* method) {
  TROUPE_TRY(check_auth(auth));
  TROUPE_TRY_ASSIGN(context, bare_context(method));
  if (!auth.by_token()) TROUPE_TRY(use_files(context.get(), auth));
  return {std::move(context)};
}

}  // namespace

core::Result<SslContextPtr> make_gateway_context(const GatewayAuth& auth) {
  TROUPE_TRY_ASSIGN(context, make_context(auth, TLS_server_method()));
  if (auth.by_token()) TROUPE_TRY(use_throw_away_certificate(context.get()));
  return {std::move(context)};
}

core::Result<SslContextPtr> make_tunnel_context(const GatewayAuth& auth) {
  return make_context(auth, TLS_client_method());
}

core::Result<void> check_host_name(SSL* ssl, const std::string& host) {
  X509* peer = SSL_get0_peer_certificate(ssl);
  if (peer == nullptr) return core::fail(ErrorCode::kConfig, "the gateway showed no certificate");
  if (X509_get_ext_by_NID(peer, NID_subject_alt_name, -1) < 0) return {};
  const bool named = X509_check_ip_asc(peer, host.c_str(), 0) == 1 ||
                     X509_check_host(peer, host.c_str(), host.size(), 0, nullptr) == 1;
  ERR_clear_error();
  if (named) return {};
  return core::fail(ErrorCode::kConfig, "the gateway's certificate does not name " + host,
                    "use a name given to `troupe ca init --hosts`");
}

}  // namespace troupe::net
