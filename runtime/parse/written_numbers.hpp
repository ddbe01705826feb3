// Numbers of JSON that keep their spelling. bounded_json can hold a number that nlohmann would
// write in another way ("0.10", "1e5", an integer of 30 digits) as a *written number*: a binary
// value of a subtype of its own, with the spelling as bytes. What reads such JSON asks here for its
// numbers and its text, since `dump` and `is_number` of nlohmann know nothing of them. Pure
// functions; any thread. Instantiated for nlohmann::json and nlohmann::ordered_json.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace troupe::parse {

// The value on one line, with every number as it was written, and bytes that are no UTF-8 replaced.
template <class Json>
std::string written_text(const Json& value);

// The JSON of a text that we wrote, with every number as it is written there; a discarded value
// (is_discarded) for a text that is none.
template <class Json>
Json written_json(std::string_view text);

// The value of a number, written or not; nothing for a value that is none.
template <class Json>
std::optional<double> number_in(const Json& value);

// The JSON with written numbers turned into the nearest doubles.
template <class Json>
Json with_nearest_numbers(const Json& value);

// A number as it is written in JSON.
template <class Json>
Json written_number(std::string_view spelling);

}  // namespace troupe::parse
