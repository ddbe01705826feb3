// Error texts for unknown names: the key that a misspelt one most likely means.
#include "runtime/config/peer_names.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/config/table.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

std::string_view leaf_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}
std::string_view section_of(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// Whether all words of one leaf are in the other: pattern and rule_pattern.
bool words_in(std::string_view one, std::string_view other) {
  const auto some = core::split(one, "_"), all = core::split(other, "_");
  return std::ranges::all_of(
      some, [&](std::string_view word) { return std::ranges::find(all, word) != all.end(); });
}

// How far a written name is from a key, in letters; a key of another section is only near if hardly
// a letter is wrong, for a section is what a name is about.
constexpr std::size_t kFar = 1000;
std::size_t cost_of(std::string_view name, std::string_view key) {
  const std::size_t letters = core::edit_distance(name, key);
  const std::string_view section = section_of(name), theirs = section_of(key);
  const bool dotted = section.size() < name.size();
  const bool here = !dotted || core::edit_distance(section, theirs) <= section.size() / 4;
  if (!here) return letters <= 2 ? letters : kFar;
  // `lr` or `actor.lr` for `actor.adam.lr`: the last word is right, the path is not.
  if (leaf_of(name) == leaf_of(key)) return std::min<std::size_t>(letters, 1);
  if (!dotted) return letters <= std::max<std::size_t>(1, name.size() / 5) ? letters + 1 : kFar;
  if (words_in(leaf_of(name), leaf_of(key))) return std::min<std::size_t>(letters, 2);
  return letters <= std::max<std::size_t>(2, leaf_of(name).size() / 4) ? letters + 1 : kFar;
}

// Empty when nothing is known of the name.
Saying answer_of(std::string_view name, Methods methods) {
  const auto [row, peer] = meaning_of(keys(), name, methods);
  if (row != nullptr) {
    return row->name == name ? Saying() : said("'", name, "' is called '", row->name, "' here");
  }
  return peer == nullptr ? Saying() : said("'", name, "' ", written(peer->text));
}

}  // namespace

std::string answer_to_name(std::string_view name, Methods methods) {
  const Saying answer = answer_of(name, methods);
  return core::advised(core::ErrorCode::kConfig, answer.what, answer.advice).message;
}

std::string nearest_name(std::string_view name, Methods methods) {
  std::string best;
  std::size_t best_cost = kFar;
  for (const Row& row : keys().rows()) {
    if (!row.is_read_by(methods)) continue;
    const std::size_t cost = cost_of(name, row.name);
    if (cost < best_cost) {
      best_cost = cost;
      best = row.name;
    }
  }
  return best;
}

core::Error unknown_key(std::string_view name, std::string_view where, Methods methods) {
  if (const Saying answer = answer_of(name, methods); !answer.empty()) {
    return refuse(where, ": ", answer).error;
  }
  const std::string near = nearest_name(name, methods);
  const std::string method = method_names(methods);
  const bool one = std::ranges::find(kMethodNames, method) != std::end(kMethodNames);
  return refuse(where, ": unknown key '", name, "'", kThen,
                near.empty()
                    ? joined("`troupe ", one ? "train " + method + " --help" : "config show",
                             "` lists all keys")
                    : joined("did you mean '", near, "'?"))
      .error;
}

}  // namespace troupe::config
