// Finds and opens libtroupe_tables.so: the file that TROUPE_TABLES_LIBRARY names, else that next to
// the program or in its ../lib. The program itself needs no crate for tables. Thread-safe; the
// library stays open.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/tables/troupe_tables.h"

#include <string>
#include <string_view>

namespace troupe::tables {

// The command that builds the library, for errors.
inline constexpr const char* kTablesBuild = "./dev build tables";

// Error kUnsupported: what is missing, and the command that builds it.
core::Result<const troupe_tables_table*> library();

inline troupe_tables_view view_of(std::string_view text) {
  return {text.data(), text.size()};
}

// Owns a text of the library.
class TablesText {
 public:
  explicit TablesText(const troupe_tables_table& table) : table_(table) {}
  TablesText(const TablesText&) = delete;
  TablesText& operator=(const TablesText&) = delete;
  ~TablesText() { table_.string_free(&text_); }

  troupe_tables_string* out() { return &text_; }
  std::string str() const {
    return text_.size == 0 ? std::string() : std::string(text_.data, text_.size);
  }

 private:
  const troupe_tables_table& table_;
  troupe_tables_string text_{nullptr, 0};
};

}  // namespace troupe::tables
