// Envelopes by reflection: fill every field of an arm with values that follow from the field's
// name, list them as `path = value` lines, and look lines up again. Used for golden frames and
// fuzzing.
#pragma once

#include "runtime/wire/envelope.hpp"

#include <capnp/dynamic.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::wire::testing {

// The arms of the union, but for `empty`.
std::vector<std::string> envelope_arms();

struct FilledFrame {
  Frame frame;
  std::vector<std::string> lines;  // every scalar: "putGroup.samples[1].text = \"...\""
};
FilledFrame fill_arm(const std::string& arm);

// The value at `path` as the lines spell it; "" when an element or field is not there.
std::string value_at(capnp::DynamicStruct::Reader root, const std::string& path);

// Visits everything that can be reached, copying texts and data; gives the number of bytes copied.
std::uint64_t visit(capnp::DynamicStruct::Reader reader);

}  // namespace troupe::wire::testing
