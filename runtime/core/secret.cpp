#include "runtime/core/secret.hpp"

#include "runtime/core/check.hpp"

#include <sys/random.h>

#include <vector>

namespace troupe::core {

std::string hex(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  TROUPE_CHECK(::getrandom(random.data(), bytes, 0) == static_cast<ssize_t>(bytes),
               "the system's random numbers");
  return hex(random);
}

bool same_secret(std::string_view given, std::string_view secret) noexcept {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size() && !secret.empty(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(secret[i % secret.size()]);
  }
  return difference == 0;
}

}  // namespace troupe::core
