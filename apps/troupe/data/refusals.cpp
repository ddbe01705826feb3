#include "apps/troupe/data/refusals.hpp"

#include <algorithm>

namespace troupe::app {
namespace {

constexpr std::size_t kCauses_max = 200;
constexpr std::size_t kPlaces = 3;
constexpr const char* kOthers = "other causes";

}  // namespace

void Refusals::add(const core::Error& error, const std::string& where) {
  ++count_;
  std::string what(error.what());
  if (what.starts_with(where)) what.erase(0, where.size());
  what.erase(0, what.find_first_not_of(": "));
  const bool known = causes_.contains(what) || causes_.size() < kCauses_max;
  Cause& cause = causes_[known ? what : kOthers];
  ++cause.rows;
  if (cause.first.size() < kPlaces) cause.first.push_back(where);
  if (known && cause.advice.empty()) cause.advice = error.advice();
}

std::vector<std::pair<std::string, Refusals::Cause>> Refusals::sorted() const {
  std::vector<std::pair<std::string, Cause>> all(causes_.begin(), causes_.end());
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a.second.rows > b.second.rows; });
  return all;
}

std::vector<std::string> Refusals::lines() const {
  std::vector<std::string> out;
  for (const auto& [what, cause] : sorted()) {
    std::string places;
    for (const std::string& place : cause.first)
      places += (places.empty() ? "" : ", ") + place;
    if (cause.rows > cause.first.size()) places += ", ...";
    out.push_back(std::to_string(cause.rows) + " x " + what + " (" + places + ")");
    if (!cause.advice.empty()) out.push_back("  hint: " + cause.advice);
  }
  return out;
}

nlohmann::ordered_json Refusals::json() const {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [what, cause] : sorted())
    list.push_back({{"cause", what}, {"rows", cause.rows}, {"first", cause.first}});
  return list;
}

}  // namespace troupe::app
