#include "actors/company/pass.hpp"

#include "runtime/core/secret.hpp"

#include <charconv>

namespace troupe::actors {

std::string make_pass(std::uint64_t number) {
  return std::to_string(number) + "-" + core::random_hex(32);
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
