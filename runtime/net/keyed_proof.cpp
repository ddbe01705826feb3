#include "runtime/net/keyed_proof.hpp"

#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/openssl.hpp"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <array>

namespace troupe::net {

core::Result<std::string> keyed_proof(const std::string& key, const std::string& text) {
  std::array<unsigned char, kToken_bytes> bytes;
  std::string proof(kProof_bytes, '\0');
  std::size_t key_bytes = 0;
  unsigned size = 0;
  if (OPENSSL_hexstr2buf_ex(bytes.data(), bytes.size(), &key_bytes, key.c_str(), '\0') != 1 ||
      key_bytes != bytes.size() ||
      HMAC(EVP_sha256(), bytes.data(), static_cast<int>(bytes.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size) == nullptr) {
    return openssl_failure(core::ErrorCode::kInternal, "cannot make a proof");
  }
  return proof;
}

}  // namespace troupe::net
