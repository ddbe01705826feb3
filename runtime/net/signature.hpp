// Signatures (Ed25519) over bytes that others pass on: anyone with the public key can check that
// they are the signer's. A private key never leaves its process. Immutable after `create`; any
// thread.
#pragma once

#include "runtime/core/result.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::net {

using Signature = std::array<unsigned char, 64>;

inline constexpr std::size_t kPublicKey_chars = 64;

class SigningKey {
 public:
  // A new random key. Error kInternal: OpenSSL cannot make one.
  static core::Result<SigningKey> create();

  const std::string& public_key() const noexcept { return public_; }  // 64 hexadecimal digits
  core::Result<Signature> sign(std::string_view bytes) const;

 private:
  SigningKey(std::shared_ptr<void> key, std::string public_key);

  std::shared_ptr<void> key_;  // EVP_PKEY
  std::string public_;
};

// True if the holder of the private key signed these bytes. False for a malformed key, too.
bool is_signed(std::string_view bytes, const Signature& signature, const std::string& public_key);

}  // namespace troupe::net
