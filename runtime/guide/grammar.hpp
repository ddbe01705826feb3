// A grammar as a request gives it. A value; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::guide {

// The space between the parts of a JSON text, as a regular expression: enough to indent it, but no
// model writes space for ever. A schema's own "x-guidance" may say another "whitespace_pattern".
inline constexpr std::string_view kJsonSpace = R"([ \t\r\n]{0,64})";

enum class GrammarKind : std::uint8_t {
  kJsonSchema,  // a JSON schema
  kRegex,       // a regular expression that the whole text matches, in Rust's syntax
  kLark,        // a grammar in llguidance's variant of Lark's syntax
};

struct Grammar {
  GrammarKind kind = GrammarKind::kLark;
  std::string text;
};

// What it is called in errors: "JSON schema", "regular expression", "grammar".
const char* name_of(GrammarKind kind);

// A grammar as one text, for another process: "json_schema:", "regex:" or "lark:" and its own.
std::string text_of(const Grammar& grammar);
// The grammar of such a text. Error kInvalidArgument: of no kind.
core::Result<Grammar> grammar_of(std::string_view text);

// Whether bytes, nesting and members are within limits.def, and a schema can be kept. Errors:
// kResources, naming the limit; kInvalidArgument, naming the key word.
core::Result<void> check_grammar(const Grammar& grammar);

}  // namespace troupe::guide
