// Makes keys and X.509 certificates: the CA of a run, its nodes' certificates, and the throw-away
// certificate of a gateway in token mode. P-256 throughout. Plain functions; any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/net/openssl.hpp"

#include <string>
#include <vector>

namespace troupe::net {

struct CertificateSpec {
  std::string common_name;
  long valid_from_s = -300;  // seconds from now; negative, since other hosts' clocks may be late
  long valid_to_s = 0;       // seconds from now
  bool authority = false;    // a CA certificate, which may sign others
  std::vector<std::string> hosts;  // subject alternative names: addresses or host names
};

core::Result<KeyPtr> make_key();

// Makes a certificate for `key`, signed by `issuer` with `issuer_key`; self-signed if `issuer` is
// null.
core::Result<CertificatePtr> make_certificate(const CertificateSpec& spec,
                                              EVP_PKEY* key,
                                              X509* issuer,
                                              EVP_PKEY* issuer_key);

}  // namespace troupe::net
