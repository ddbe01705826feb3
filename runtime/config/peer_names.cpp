#include "runtime/config/peer_names.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/bool_word.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace troupe::config {
namespace {

using Kind = PeerName::Kind;

#define PEER_IS(methods, names, key, values, note) {Kind::kIs, methods, names, key, values, note},
#define PEER_HINTS(methods, names, key, values, note) \
  {Kind::kHints, methods, names, key, values, note},
#define PEER_TIMES(methods, name, key, other, note) {Kind::kTimes, methods, name, key, other, note},
#define PEER_SO(methods, names, values, text) {Kind::kSo, methods, names, {}, values, text},
#define PEER_SAID(methods, names, text) {Kind::kSaid, methods, names, {}, {}, text},

constexpr PeerName kPeerNames[] = {
#include "runtime/config/peer_names.def"
};

// Whether a pattern, in which a star stands for any letters, matches all of a name.
bool matches(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t skip = star; skip <= name.size(); ++skip) {
    if (matches(rest, name.substr(skip))) return true;
  }
  return false;
}

// "True" and "true" are one word, and so are null and None.
std::string plain_word(std::string_view word) {
  std::string out(word);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out == "none" || out == "null" || out == "~" ? "null" : out;
}
bool same_word(std::string_view one, std::string_view other) {
  const auto a = core::bool_word(one), b = core::bool_word(other);
  const bool words = std::isalpha(static_cast<unsigned char>(other.empty() ? ' ' : other[0])) != 0;
  if (a && b && words) return *a == *b;
  return plain_word(one) == plain_word(other);
}

// What a value is here: nullopt if it has no counterpart.
std::optional<std::string> translated(std::string_view values, const std::string& written) {
  if (values.empty()) return written;
  for (const std::string_view pair : core::split(values, " ")) {
    if (pair == "*") return written;
    if (pair.find('>') != pair.npos) continue;  // another key's
    const auto equals = pair.find('=');
    if (same_word(written, pair.substr(0, equals))) return std::string(pair.substr(equals + 1));
  }
  return std::nullopt;
}

// The key that takes values with such an ending: "*.py>reward.python". Empty: the row's own.
std::string_view other_key(std::string_view values, const std::vector<std::string>& given) {
  for (const std::string_view pair : core::split(values, " ")) {
    const auto to = pair.find('>');
    if (to == pair.npos || given.size() != 1) continue;
    if (given[0].ends_with(pair.substr(1, to - 1))) return pair.substr(to + 1);
  }
  return {};
}

// A whole number may be written 3.0 by those who count in fractions.
std::string without_fraction(std::string value) {
  const auto dot = value.find('.');
  const bool whole =
      dot != value.npos && dot > 0 && value.find_first_not_of('0', dot + 1) == value.npos;
  return whole ? value.substr(0, dot) : value;
}

bool is_so(const PeerName& peer, const std::vector<std::string>& values) {
  if (peer.values.empty()) return true;
  return std::ranges::any_of(core::split(peer.values, " "), [&](std::string_view so) {
    return values.size() == 1 && same_word(values[0], so);
  });
}

core::Failure unread(const Setting& given, const Row& row, Methods methods) {
  const std::string meant =
      given.name == row.name ? row.name
                             : joined("'", given.name, "' is called '", row.name, "' here, which");
  return refuse(given.where, ": ", meant, " is not read by `train ", method_names(methods),
                "` (only by ", method_names(row.only), ")", kThen, "take it out");
}

// A factor stays as it is until its product is known; what is no number is refused with its key.
std::optional<std::int64_t> factor_value(std::string_view text) {
  const auto value = core::number_of<std::int64_t>(text);
  return value && *value >= 0 && *value <= 1'000'000 ? value : std::nullopt;
}

// Whether a row says what null is, or a word that elsewhere is null: report_to none.
bool says_null(const PeerName& peer, std::string_view written) {
  return std::ranges::any_of(core::split(peer.values, " "), [&](std::string_view pair) {
    const std::string_view theirs = pair.substr(0, pair.find('='));
    return theirs == "null" || (theirs == "none" && (written == "none" || written == "None"));
  });
}

// The setting that a row of kIs, kHints or kTimes makes of another trainer's.
core::Result<Understood> taken(const PeerName& peer, const Row& row, Setting given) {
  Understood out;
  out.hint = peer.kind == Kind::kHints;
  const bool times = peer.kind == Kind::kTimes;
  if (times) given.factor = given.name;
  std::string ours;
  for (std::string& value : given.values) {
    const auto meant = times ? value : translated(peer.values, value);
    if (!meant) {
      std::string known;
      for (const std::string_view pair : core::split(peer.values, " "))
        known += joined(known.empty() ? "" : ", ", pair.substr(0, pair.find('=')));
      return refuse(given.where, ": '", given.name, "' = ", value, " has no counterpart: it is '",
                    row.name, "' here, for ", known, kThen, peer.text);
    }
    value = row.is<Int>() ? without_fraction(*meant) : *meant;
    ours += (ours.empty() ? "" : " ") + value;
  }
  if (!peer.text.empty()) {
    out.note =
        joined(given.where, ": '", given.name, "' is taken as ", times ? "a factor of " : "",
               row.name, " ", times ? "" : ours + "; ", times ? "(" + ours + "); " : "", peer.text);
  }
  given.name = row.name;
  out.setting = std::move(given);
  return out;
}

}  // namespace

std::span<const PeerName> peer_names() {
  return kPeerNames;
}

const PeerName* find_peer(std::string_view name, Methods methods) {
  for (const bool stars : {false, true}) {
    for (const PeerName& peer : kPeerNames) {
      if ((peer.methods & methods) == 0) continue;
      for (const std::string_view one : core::split(peer.names, " ")) {
        if (one.empty() || (one.find('*') != one.npos) != stars) continue;
        if (matches(one, name)) return &peer;
      }
    }
  }
  return nullptr;
}

bool Meaning::is_switch() const {
  if (row == nullptr) return false;
  if (peer != nullptr && peer->values.starts_with("true=")) return true;
  return row != nullptr && row->is<bool>();
}

Meaning meaning_of(const Table& table, std::string_view name, Methods methods) {
  const Row* own = table.find(name);
  if (own != nullptr && own->is_read_by(methods)) return {own, nullptr};
  const Row* known = table.find_any(name);
  const PeerName* peer = find_peer(name, methods);
  // A name in a key's row has the key's meaning, unless the table says more of its values.
  const bool also = known != nullptr && known->is_read_by(methods);
  if (peer != nullptr && (!also || peer->key == known->name)) {
    return {peer->key.empty() ? nullptr : table.find(peer->key), peer};
  }
  return {known, nullptr};
}

core::Result<Understood> understand(const Table& table, Methods methods, Setting given) {
  const auto [row, peer] = meaning_of(table, given.name, methods);
  if (row == nullptr && peer == nullptr) {
    const PeerName* const elsewhere = find_peer(given.name, kAllMethods);
    const Row* const key = elsewhere == nullptr ? nullptr : table.find(elsewhere->key);
    if (key != nullptr) return unread(given, *key, methods);
    if (elsewhere != nullptr) {
      return refuse(given.where, ": '", given.name, "' belongs to `train ",
                    method_names(elsewhere->methods), "`, where it ", elsewhere->text, kThen,
                    "take it out");
    }
    return core::fail(unknown_key(given.name, given.where, methods));
  }
  if (row != nullptr && !row->is_read_by(methods)) return unread(given, *row, methods);
  if (peer == nullptr) {
    given.name = row->name;
    return Understood{std::move(given), false, {}};
  }
  const bool is_null = given.values.size() == 1 && plain_word(given.values[0]) == "null";
  if (row != nullptr) {
    if (is_null && !says_null(*peer, given.values[0])) return Understood{};
    const std::string_view other = other_key(peer->values, given.values);
    if (!other.empty()) return taken(*peer, *table.find(other), std::move(given));
    return taken(*peer, *row, std::move(given));
  }
  if (is_null) return Understood{};  // others write it for "not given"
  if (peer->kind == Kind::kSo && is_so(*peer, given.values)) {
    return Understood{std::nullopt, false,
                      joined(given.where, ": '", given.name, "' ", peer->text)};
  }
  const bool says_value = peer->kind == Kind::kSo && !peer->values.empty();
  return refuse(given.where, ": '", given.name, "' ",
                says_value ? joined("= ", core::joined(given.values, " "), ": it ") : "",
                written(peer->text));
}

void multiply_factors(std::vector<Setting>& settings) {
  std::map<std::string, std::map<std::string, std::string>> factors;  // by key and name
  for (const Setting& setting : settings)
    if (!setting.factor.empty()) factors[setting.name][setting.factor] = setting.values.front();
  std::vector<Setting> out;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Setting& setting = settings[i];
    if (setting.factor.empty()) {
      out.push_back(std::move(setting));
      continue;
    }
    const bool last = std::none_of(
        settings.begin() + static_cast<std::ptrdiff_t>(i) + 1, settings.end(),
        [&](const Setting& later) { return later.name == setting.name && !later.factor.empty(); });
    if (!last) continue;
    std::int64_t product = 1;
    std::optional<std::string> wrong;
    for (const auto& [name, value] : factors[setting.name]) {
      const auto number = factor_value(value);
      if (!number) wrong = value;
      product *= number.value_or(1);
      const PeerName* const peer = find_peer(name, kAllMethods);
      const auto equals = peer->values.find('=');
      const std::string other(peer->values.substr(0, equals));
      if (!factors[setting.name].contains(other))
        product *= factor_value(peer->values.substr(equals + 1)).value_or(1);
    }
    setting.values = {wrong ? *wrong : std::to_string(product)};
    setting.factor.clear();
    out.push_back(std::move(setting));
  }
  settings = std::move(out);
}

std::string peer_answer(const Table& table, std::string_view name, Methods methods) {
  const auto [row, peer] = meaning_of(table, name, methods);
  if (row != nullptr && !row->is_read_by(methods)) {
    return joined("only in ", method_names(row->only), ": `", row->name, "`");
  }
  if (peer == nullptr) {
    if (row != nullptr) return row->name == name ? "the same" : joined("`", row->name, "`");
    const PeerName* const elsewhere = find_peer(name, kAllMethods);
    const Row* const key = elsewhere == nullptr ? nullptr : table.find(elsewhere->key);
    if (key != nullptr) return joined("only in ", method_names(key->only), ": `", key->name, "`");
    return elsewhere == nullptr
               ? ""
               : joined("only in ", method_names(elsewhere->methods), ": ", elsewhere->text);
  }
  if (row == nullptr) {
    const std::string values = joined(" (", peer->values, ")");
    return joined(peer->kind == Kind::kSo ? "taken" : "not taken",
                  peer->kind == Kind::kSo && !peer->values.empty() ? values : "", ": ", peer->text);
  }
  if (peer->kind == Kind::kTimes) {
    return joined("`", row->name, "`, times ", peer->values.substr(0, peer->values.find('=')),
                  peer->text.empty() ? "" : joined(": ", peer->text));
  }
  const bool all = peer->values.empty() || peer->values == "*";
  return joined("`", row->name, "`", all ? "" : joined(" (", peer->values, ")"),
                peer->text.empty() ? "" : joined(": ", peer->text));
}

}  // namespace troupe::config
