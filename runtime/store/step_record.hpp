// The frame of a record in a file of a StepLog: its length and its CRC-32C, 4 bytes each, least
// byte first, then the record. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe::store {

// Appends the record with its frame to `out`.
void add_record(std::string& out, std::string_view record);

// The record with which `rest` begins, and takes it off `rest`; nullopt if that is incomplete,
// damaged, or nothing.
std::optional<std::string_view> next_record(std::string_view& rest);

}  // namespace troupe::store
