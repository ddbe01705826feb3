// The proof that a peer holds a secret without sending it: HMAC-SHA256 over a text in which both
// sides' nonces are. Compare proofs with core::same_secret. A plain function; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>

namespace troupe::net {

inline constexpr std::size_t kProof_bytes = 32;

// `key`: 64 hexadecimal digits (make_token, core::random_hex(32)). Error kInternal: it is not.
core::Result<std::string> keyed_proof(const std::string& key, const std::string& text);

}  // namespace troupe::net
