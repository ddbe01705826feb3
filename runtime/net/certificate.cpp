#include "runtime/net/certificate.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/x509v3.h>

namespace troupe::net {
namespace {

core::Result<void> add_extension(X509* certificate,
                                 X509* issuer,
                                 int nid,
                                 const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr)
    return openssl_failure(ErrorCode::kConfig, "the certificate extension '" + value + "'");
  const int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  if (added != 1) return openssl_failure(ErrorCode::kInternal, "cannot add an extension");
  return {};
}

// Formats hosts as OpenSSL's subjectAltName. OpenSSL parses the result as configuration text, so
// only the characters of host names and addresses are accepted.
core::Result<std::string> alternative_names(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    boost::system::error_code not_an_address;
    boost::asio::ip::make_address(host, not_an_address);
    const bool plain = host.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") == std::string::npos;
    if (host.empty() || host.size() > 253 || !plain ||
        (not_an_address && host.find(':') != std::string::npos)) {
      return core::fail(ErrorCode::kConfig, "'" + host + "' is neither a host name nor an address");
    }
    if (!names.empty()) names += ',';
    names += not_an_address ? "DNS:" : "IP:";
    names += host;
  }
  return names;
}

core::Result<void> set_serial(X509* certificate) {
  constexpr int kBits = 127;  // one less than 16 bytes, so that the number is positive
  const std::unique_ptr<BIGNUM, OpensslFree<BN_free>> number(BN_new());
  if (!number || BN_rand(number.get(), kBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1)
    return openssl_failure(ErrorCode::kResources, "no random bytes for a serial number");
  if (BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr) return {};
  return openssl_failure(ErrorCode::kInternal, "cannot set a serial number");
}

core::Result<void> add_extensions(X509* certificate, X509* issuer, const CertificateSpec& spec) {
  const bool authority = spec.authority;
  TROUPE_TRY(add_extension(certificate, issuer, NID_basic_constraints,
                           authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE"));
  TROUPE_TRY(
      add_extension(certificate, issuer, NID_key_usage,
                    authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature"));
  TROUPE_TRY(add_extension(certificate, issuer, NID_subject_key_identifier, "hash"));
  if (authority) return {};
  TROUPE_TRY(add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth"));
  if (issuer != certificate)
    TROUPE_TRY(add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always"));
  TROUPE_TRY_ASSIGN(names, alternative_names(spec.hosts));
  if (names.empty()) return {};
  return add_extension(certificate, issuer, NID_subject_alt_name, names);
}

}  // namespace

core::Result<KeyPtr> make_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failure(ErrorCode::kResources, "cannot make a key");
  return {std::move(key)};
}

core::Result<CertificatePtr> make_certificate(const CertificateSpec& spec,
                                              EVP_PKEY* key,
                                              X509* issuer,
                                              EVP_PKEY* issuer_key) {
  CertificatePtr made(X509_new());
  if (!made) return openssl_failure(ErrorCode::kResources, "cannot make a certificate");
  X509* certificate = made.get();
  X509* signer = issuer != nullptr ? issuer : certificate;
  TROUPE_TRY(set_serial(certificate));
  const auto* name = reinterpret_cast<const unsigned char*>(spec.common_name.data());
  X509_NAME* subject = X509_get_subject_name(certificate);
  const bool filled =
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), spec.valid_from_s) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), spec.valid_to_s) != nullptr &&
      X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("Troupe"), -1, -1,
                                 0) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name,
                                 static_cast<int>(spec.common_name.size()), -1, 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1 &&
      X509_set_pubkey(certificate, key) == 1;
  if (!filled) return openssl_failure(ErrorCode::kInternal, "cannot fill a certificate");
  TROUPE_TRY(add_extensions(certificate, signer, spec));
  if (X509_sign(certificate, issuer != nullptr ? issuer_key : key, EVP_sha256()) == 0)
    return openssl_failure(ErrorCode::kInternal, "cannot sign a certificate");
  return {std::move(made)};
}

}  // namespace troupe::net
