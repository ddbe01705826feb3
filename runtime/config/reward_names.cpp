#include "runtime/config/reward_names.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <filesystem>

namespace troupe::config {
namespace {

constexpr std::size_t kAttachedName_bytes_max = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_' ||
         c == '.';
}

}  // namespace

std::string reward_figure(std::string_view figure) {
  TROUPE_CHECK(std::ranges::find(kRewardFigures, figure) != kRewardFigures.end(),
               "a metric of the run that a reward's name could take");
  return "reward/" + std::string(figure);
}

std::string own_word_fault(std::string_view name) {
  if (name == "rest") {
    return "no reward may be called 'rest', which in a formula is the sum of those not named";
  }
  const std::string_view first = name.substr(0, name.find('/'));
  if (std::ranges::find(kRewardFigures, first) == kRewardFigures.end()) return {};
  return "no reward may be called '" + std::string(name) + "', since reward/" + std::string(first) +
         " is a figure of the run's own; these names are taken: " + core::joined(kRewardFigures);
}

std::string attached_name_fault(std::string_view name) {
  if (name.empty() || name.size() > kAttachedName_bytes_max ||
      !std::ranges::all_of(name, is_plain) || std::ranges::all_of(name, is_digit) ||
      std::ranges::all_of(name, [](char c) { return c == '.'; }) || name.starts_with("eval-")) {
    return "a reward's name has up to " + std::to_string(kAttachedName_bytes_max) +
           " letters, digits, '-', '_' and '.', not digits or dots alone, and does not begin with "
           "'eval-', as the roles of held-out sets do";
  }
  return own_word_fault(name);
}

std::string name_of_file(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

std::string name_of_folder(const std::string& path) {
  std::filesystem::path folder = path;
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

}  // namespace troupe::config
