#include "actors/company/pass.hpp"

#include "runtime/core/secret.hpp"

#include <charconv>
#include <string_view>

namespace troupe::actors::company {
namespace {

// Takes "NUMBER-" from the front. False when it is not there.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto read = static_cast<std::size_t>(parsed.ptr - text.data());
  if (parsed.ec != std::errc() || read == text.size() || text[read] != '-') return false;
  text.remove_prefix(read + 1);
  return true;
}

}  // namespace

std::string make_pass(const PassFacts& facts) {
  return std::to_string(facts.run.value) + "-" + std::to_string(facts.number) + "-" +
         core::random_hex(32);
}

core::Result<PassFacts> facts_of_pass(const std::string& pass) {
  PassFacts facts;
  std::string_view rest = pass;
  if (!take_number(rest, facts.run.value) || !take_number(rest, facts.number) ||
      facts.number == 0) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "the company gave no pass that this program can read");
  }
  return facts;
}

}  // namespace troupe::actors::company
