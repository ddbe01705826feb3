// Other people's names of settings (peer_names.def): what OpenRLHF, TRL, verl and LLaMA-Factory
// call them, and what they are here. A name as written becomes a key, a line to print, or
// the answer that says what to write instead. Immutable; any thread.
#pragma once

#include "runtime/config/table.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe::config {

struct PeerName {
  enum class Kind {
    kIs,     // taken as `key`
    kHints,  // as kIs, but any other mention of the key wins
    kTimes,  // one of two numbers whose product is the value of `key`
    kSo,     // asks for what always holds
    kSaid    // refused with `text`
  };
  Kind kind;
  Methods methods;
  std::string_view names;  // separated by spaces; a star in one matches any letters
  std::string_view key;    // of kIs, kHints and kTimes
  // kIs, kHints: "theirs=ours ... *"; kTimes: "OTHER=NUMBER", the other factor and what it is when
  // it is not given; kSo: those that are so, empty: any.
  std::string_view values;
  std::string_view text;
};

std::span<const PeerName> peer_names();

// The row for this name in one of these methods; null if there is none.
const PeerName* find_peer(std::string_view name, Methods methods);

// What a name means where one of `methods` is trained. A key that the method reads comes first,
// then another trainer's name, then a key that it does not read. Both null: an unknown name.
struct Meaning {
  const Row* row = nullptr;        // the key, by its own or another name
  const PeerName* peer = nullptr;  // the row that gives the key, or the answer

  // Whether the name stands without a value for "true".
  bool is_switch() const;
};
Meaning meaning_of(const Table& table, std::string_view name, Methods methods);

// What a setting has become.
struct Understood {
  std::optional<Setting> setting;  // of a key; none if there is nothing to set
  bool hint = false;               // goes before all others
  std::string note;                // for the user; empty: nothing
};

// Takes a setting whose name and values are as the user wrote them. Errors (kConfig): no known name
// (suggests the nearest key), an answer of the table, a value without a counterpart, a key that the
// methods do not read.
core::Result<Understood> understand(const Table& table, Methods methods, Setting written);

// Puts the product of factors in the place of the last of them. A later one of the same name
// counts.
void multiply_factors(std::vector<Setting>& settings);

// What a page says about a name in `methods`: a key, how values are translated, an answer.
// Empty: an unknown name.
std::string peer_answer(const Table& table, std::string_view name, Methods methods);

}  // namespace troupe::config
