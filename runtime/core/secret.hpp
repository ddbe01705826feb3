// Keys that nobody can guess: bytes from the system as text, and comparing what a peer says with
// one. Pure functions but for the random bytes; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace troupe::core {

// Two lower-case hexadecimal digits a byte.
std::string hex(std::span<const unsigned char> bytes);

// `bytes` random bytes from the system's generator, in hexadecimal.
std::string random_hex(std::size_t bytes);

// True when they are equal. Looks at every byte of `given` whatever it has seen, so that the time
// tells nothing of where they differ.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace troupe::core
