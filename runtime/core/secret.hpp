// Unguessable secrets: makes them from the system's random bytes, as text, and compares them with
// what a peer sends. Pure functions except for the random bytes; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace troupe::core {

// Two lower-case hexadecimal digits per byte.
std::string hex(std::span<const unsigned char> bytes);

// `bytes` random bytes from the system's generator, in hexadecimal.
std::string random_hex(std::size_t bytes);

// True if they are equal. Always compares every byte of `given`, so the time does not reveal where
// they differ.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace troupe::core
