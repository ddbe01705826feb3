// Smart pointers for OpenSSL objects, and functions that turn OpenSSL's error queue into one error.
// Each thread has its own queue: read it right after the call that failed, before any suspension.
// Only the sources of this room include this header.
#pragma once

#include "runtime/core/result.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace troupe::net {

template <auto Free>
struct OpensslFree {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};

using SslContextPtr = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslFree<X509_free>>;

// The text of the first error in this thread's queue; empties the queue.
inline std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  std::string text = reason != nullptr ? reason : "";
  if (text.empty() && code != 0) {
    char buffer[160];
    ERR_error_string_n(code, buffer, sizeof buffer);
    text = buffer;
  }
  ERR_clear_error();
  return text.empty() ? "no reason given" : text;
}

inline core::Failure openssl_failure(core::ErrorCode code, const std::string& what) {
  return core::fail(code, what + ": " + openssl_reason());
}

}  // namespace troupe::net
