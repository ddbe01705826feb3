// Which methods read rows like a given one, for the hint where a method gets rows of another kind.
// Pure functions.
#pragma once

#include "runtime/config/method.hpp"
#include "runtime/core/error.hpp"
#include "runtime/data/table_reader.hpp"

namespace troupe::data {

// `error`, if it says that the row lacks a column and the row is of another kind than `wanted`:
// with what such rows have, what this one has, and which methods read that. Else `error` as it is.
core::Error about_kind(const core::Error& error, const Json& row, config::MethodRows wanted);

}  // namespace troupe::data
