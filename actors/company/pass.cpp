#include "actors/company/pass.hpp"

#include "runtime/core/check.hpp"

#include <sys/random.h>

#include <charconv>

namespace troupe::actors {

std::string make_pass(std::uint64_t number) {
  unsigned char bytes[32];
  TROUPE_CHECK(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes,
               "the kernel gives random bytes");
  constexpr char kHex[] = "0123456789abcdef";
  std::string pass = std::to_string(number) + "-";
  for (const unsigned char byte : bytes) {
    pass += kHex[byte >> 4];
    pass += kHex[byte & 15];
  }
  return pass;
}

core::Result<std::uint64_t> number_of_pass(const std::string& pass) {
  std::uint64_t number = 0;
  const char* const end = pass.data() + pass.size();
  const auto parsed = std::from_chars(pass.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-' || number == 0) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "the company gave no pass that this program can read");
  }
  return number;
}

}  // namespace troupe::actors
