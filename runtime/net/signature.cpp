#include "runtime/net/signature.hpp"

#include "runtime/core/secret.hpp"
#include "runtime/net/openssl.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

namespace troupe::net {
namespace {

constexpr std::size_t kEd25519_bytes = 32;

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

DigestContext digest_context() {
  return {EVP_MD_CTX_new(), &EVP_MD_CTX_free};
}

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

SigningKey::SigningKey(std::shared_ptr<void> key, std::string public_key)
    : key_(std::move(key)), public_(std::move(public_key)) {}

core::Result<SigningKey> SigningKey::create() {
  EVP_PKEY* const made = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  std::array<unsigned char, kEd25519_bytes> bytes{};
  std::size_t size = bytes.size();
  const bool good = made != nullptr && EVP_PKEY_get_raw_public_key(made, bytes.data(), &size) == 1;
  std::shared_ptr<void> key(made, [](void* one) { EVP_PKEY_free(static_cast<EVP_PKEY*>(one)); });
  if (!good) return openssl_failure(core::ErrorCode::kInternal, "cannot make a signing key");
  return SigningKey(std::move(key), core::hex(bytes));
}

core::Result<Signature> SigningKey::sign(std::string_view bytes) const {
  const DigestContext context = digest_context();
  Signature signature{};
  std::size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                         static_cast<EVP_PKEY*>(key_.get())) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, as_bytes(bytes), bytes.size()) != 1) {
    return openssl_failure(core::ErrorCode::kInternal, "cannot sign");
  }
  return signature;
}

bool is_signed(std::string_view bytes, const Signature& signature, const std::string& public_key) {
  std::array<unsigned char, kEd25519_bytes> raw{};
  std::size_t size = 0;
  if (OPENSSL_hexstr2buf_ex(raw.data(), raw.size(), &size, public_key.c_str(), '\0') != 1 ||
      size != raw.size()) {
    return false;
  }
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw.data(), raw.size()),
      &EVP_PKEY_free);
  const DigestContext context = digest_context();
  return key != nullptr && context != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(), as_bytes(bytes),
                          bytes.size()) == 1;
}

}  // namespace troupe::net
