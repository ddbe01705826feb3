// Fills references into the values of a pipeline: ${name}, and $$ for a dollar sign. What a name
// means is the caller's. Pure functions.
#pragma once

#include "apps/pipeline/pipeline_file.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace troupe::pipeline {

// What stands for the text between ${ and }.
using Lookup = std::function<core::Result<Value>(std::string_view name)>;

// The text with all references filled in; the items of a list are joined by commas. Errors: those
// of `lookup`; kConfig: a ${ without its }.
core::Result<std::string> fill(std::string_view text, const Lookup& lookup);

// Fills in each item of a value. An item that is one reference to a list becomes all items of
// that list.
core::Result<Value> fill(const Value& value, const Lookup& lookup);

}  // namespace troupe::pipeline
